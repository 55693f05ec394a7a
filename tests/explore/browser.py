# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium, driven by its DevTools protocol through two pipes: no package is needed.

    with Browser() as browser:
        page = browser.open("kernel.html", width=1400, height=900)
        page.run("document.title")
        page.click("#theme")
        page.screenshot("kernel.png")
        assert not page.problems, page.problems
"""
import base64
import json
import os
import pathlib
import select
import shutil
import subprocess
import tempfile
import time
import zlib


def find():
    """The program, or None."""
    return os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")


def packed(png):
    """The same picture in fewer bytes: the browser compresses quickly, not well."""
    out, pixels, at = png[:8], b"", 8
    while at < len(png):
        length = int.from_bytes(png[at:at + 4], "big")
        kind, data = png[at + 4:at + 8], png[at + 8:at + 8 + length]
        at += 12 + length
        if kind == b"IDAT":
            pixels += data
            continue
        if kind == b"IEND":
            best = zlib.compress(zlib.decompress(pixels), 9)
            out += len(best).to_bytes(4, "big") + b"IDAT" + best + zlib.crc32(b"IDAT" + best).to_bytes(4, "big")
        out += length.to_bytes(4, "big") + kind + data + zlib.crc32(kind + data).to_bytes(4, "big")
    return out


class Pixels:
    """A PNG of 8 bits a channel: pixels[x, y] is (red, green, blue)."""

    def __init__(self, png):
        self.width, self.height, depth, kind = int.from_bytes(png[16:20], "big"), int.from_bytes(png[20:24], "big"), png[24], png[25]
        assert depth == 8 and kind in (2, 6), (depth, kind)
        self.channels = 3 if kind == 2 else 4
        data, at = b"", 8
        while at < len(png):
            length = int.from_bytes(png[at:at + 4], "big")
            if png[at + 4:at + 8] == b"IDAT":
                data += png[at + 8:at + 8 + length]
            at += 12 + length
        self.rows = self.unfiltered(zlib.decompress(data))

    def unfiltered(self, data):
        step, size = self.channels, self.channels * self.width
        rows, above = [], bytearray(size)
        for first in range(0, len(data), size + 1):
            kind, row = data[first], bytearray(data[first + 1:first + 1 + size])
            for i in range(size) if kind else ():
                left, up, corner = (row[i - step], above[i], above[i - step]) if i >= step else (0, above[i], 0)
                if kind == 1:
                    guess = left
                elif kind == 2:
                    guess = up
                elif kind == 3:
                    guess = (left + up) // 2
                else:
                    by = [abs(up - corner), abs(left - corner), abs(left + up - 2 * corner)]
                    guess = (left, up, corner)[by.index(min(by))]
                row[i] = row[i] + guess & 255
            rows.append(row)
            above = row
        return rows

    def __getitem__(self, place):
        x, y = place
        return tuple(self.rows[y][x * self.channels:x * self.channels + 3])


class Browser:
    def __init__(self):
        self.profile = tempfile.mkdtemp(prefix="tartan_chromium_")
        to_browser, self.write_end = os.pipe()
        self.read_end, from_browser = os.pipe()

        def pipes():  # the browser reads commands from 3 and writes answers to 4
            high = [os.dup(to_browser), os.dup(from_browser)]
            os.dup2(high[0], 3)
            os.dup2(high[1], 4)

        self.process = subprocess.Popen(
            [find(), "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
             "--remote-debugging-pipe", "--no-first-run", "--disable-background-networking",
             "--disable-extensions", f"--user-data-dir={self.profile}", "about:blank"],
            preexec_fn=pipes, close_fds=False, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_browser)
        os.close(from_browser)
        self.buffer, self.number, self.answers, self.events = b"", 0, {}, []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.write_end)
        os.close(self.read_end)
        shutil.rmtree(self.profile, ignore_errors=True)

    def receive(self, timeout):
        """Reads what has arrived; waits for something until the timeout."""
        ready, _, _ = select.select([self.read_end], [], [], timeout)
        if not ready:
            return False
        data = os.read(self.read_end, 1 << 16)
        if not data:
            raise RuntimeError("the browser ended")
        self.buffer += data
        while b"\0" in self.buffer:
            text, self.buffer = self.buffer.split(b"\0", 1)
            message = json.loads(text)
            if "id" in message:
                self.answers[message["id"]] = message
            else:
                self.events.append(message)
        return True

    def call(self, method, session=None, timeout=60, **params):
        self.number += 1
        number = self.number
        message = {"id": number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        os.write(self.write_end, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + timeout
        while number not in self.answers:
            if time.monotonic() > end:
                raise TimeoutError(method)
            self.receive(1)
        answer = self.answers.pop(number)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        return answer["result"]

    def open(self, path, width=1400, height=900, scale=1, phone=False, dark=False):
        return Page(self, pathlib.Path(path).resolve().as_uri(), width, height, scale, phone, dark)


class Page:
    def __init__(self, browser, address, width, height, scale, phone, dark):
        self.browser = browser
        target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=scale, mobile=phone)
        self.prefer_dark(dark)
        browser.events.clear()
        self.call("Page.navigate", url=address)
        self.wait("document.documentElement?.dataset.ready === 'true'")

    def call(self, method, **params):
        return self.browser.call(method, session=self.session, **params)

    def prefer_dark(self, dark):
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def run(self, script):
        """The value of an expression."""
        result = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(f"{script}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def wait(self, condition, seconds=20):
        end = time.monotonic() + seconds
        while not self.run(condition):
            if time.monotonic() > end:
                raise TimeoutError(f"{condition}: {self.problems}")
            time.sleep(0.02)

    def settle(self):
        """Until the animations that a call began are done."""
        self.run("new Promise((done) => setTimeout(() => requestAnimationFrame(() => requestAnimationFrame(done)), 120))")

    def mouse(self, x, y, kinds=("mouseMoved", "mousePressed", "mouseReleased")):
        for kind in kinds:
            button = {} if kind == "mouseMoved" else {"button": "left", "clickCount": 1}
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **button)

    def click(self, selector, dx=None, dy=None):
        """Clicks the element's middle, or so many pixels from its corner."""
        box = self.run(f"(() => {{ const e = document.querySelector({json.dumps(selector)}); e.scrollIntoView({{block: 'center'}});"
                       " const r = e.getBoundingClientRect(); return [r.x, r.y, r.width, r.height]; })()")
        self.mouse(box[0] + (box[2] / 2 if dx is None else dx), box[1] + (box[3] / 2 if dy is None else dy))

    def key(self, key):
        text = {"text": key} if len(key) == 1 else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key)

    def pixels(self, selector):
        """What the screen shows of an element."""
        clip = self.run(f"(() => {{ const e = document.querySelector({json.dumps(selector)}); e.scrollIntoView({{block: 'center'}});"
                        " const r = e.getBoundingClientRect(); return {x: r.x + scrollX, y: r.y + scrollY, width: r.width, height: r.height, scale: 1}; })()")
        self.settle()
        return Pixels(base64.b64decode(self.call("Page.captureScreenshot", format="png", clip=clip)["data"]))

    def screenshot(self, path, clip=None, whole=False):
        options = {"captureBeyondViewport": whole}
        if clip:
            options["clip"] = dict(zip(("x", "y", "width", "height"), clip), scale=1)
        data = self.call("Page.captureScreenshot", format="png", **options)["data"]
        pathlib.Path(path).write_bytes(packed(base64.b64decode(data)))

    @property
    def problems(self):
        """Errors of scripts and of the console, and requests other than that of the page itself."""
        while self.browser.receive(0):
            pass
        out = []
        for event in self.browser.events:
            if event.get("sessionId") != self.session:
                continue
            name, params = event["method"], event["params"]
            if name == "Runtime.exceptionThrown":
                out.append(params["exceptionDetails"].get("exception", {}).get("description", "exception"))
            elif name == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
                out.append(params["entry"]["text"])
            elif name == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning"):
                out.append(str(params["args"]))
            elif name == "Network.requestWillBeSent" and params["type"] != "Document":
                if not params["request"]["url"].startswith("data:"):
                    out.append("request: " + params["request"]["url"])
        return out
