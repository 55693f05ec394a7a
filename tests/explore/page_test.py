#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The page of `tartan explore` in a browser: loads without errors and requests, lights, scrolls,
searches, fits a phone. A part of scripts/soak.

    tests/explore/page_test.py build/release/bin/tartan

Without Chromium every test is skipped.
"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import browser

ROOT = pathlib.Path(__file__).resolve().parents[2]
TARTAN = pathlib.Path(sys.argv.pop(1)).resolve() if len(sys.argv) > 1 else None

PAGES = {
    "one_mma": ["one_mma"],
    "gemm_sm80": ["gemm", "--target", "sm_80"],
    "gemm_sm90a": ["gemm", "--target", "sm_90a", "--type", "bf16", "--m", "256", "--n", "256", "--k", "256",
                   "--tile", "128x256x64", "--warps", "8x1", "--stages", "4", "--producers", "4"],
    "race": [ROOT / "tests/museum/cp-async-without-barrier/wrong.json"],
    "wrong_results": [ROOT / "tests/museum/row-blocks-swapped/wrong.json"],
    "deadlock": [ROOT / "tests/museum/parity-of-the-ring/wrong.json"],
    "no_fence": [ROOT / "tests/museum/wgmma-without-fence/wrong.ptx"],
}

# A warp that copies and arrives, and one that waits for it.
TRACE = {"traceEvents": [
    {"ph": "M", "pid": 1, "name": "process_name", "args": {"name": "CTA 0,0,0 (emulator steps, not cycles)"}},
    {"ph": "M", "pid": 1, "tid": 1, "name": "thread_name", "args": {"name": "warp 0 (producer)", "kind": "warp"}},
    {"ph": "M", "pid": 1, "tid": 9, "name": "thread_name", "args": {"name": "warp 1 (consumer)", "kind": "warp"}},
    {"ph": "M", "pid": 1, "tid": 100000, "name": "thread_name", "args": {"name": "mbarrier full", "kind": "barrier"}},
    {"ph": "X", "pid": 1, "tid": 1, "cat": "warp", "name": "warp 0", "ts": 0, "dur": 60, "args": {}},
    {"ph": "X", "pid": 1, "tid": 1, "cat": "copy", "name": "cp.async x4", "ts": 5, "dur": 8, "args": {"line": 22, "bytes": 64}},
    {"ph": "X", "pid": 1, "tid": 9, "cat": "wait", "name": "wait for full", "ts": 2, "dur": 20, "args": {"line": 25}},
    {"ph": "X", "pid": 1, "tid": 100000, "cat": "phase", "name": "phase 0", "ts": 0, "dur": 20, "args": {}},
    {"ph": "s", "pid": 1, "tid": 1, "id": 7, "cat": "flow", "name": "releases", "ts": 12},
    {"ph": "f", "bp": "e", "pid": 1, "tid": 9, "id": 7, "cat": "flow", "name": "releases", "ts": 22},
    {"ph": "b", "pid": 1, "tid": 1, "id": 3, "cat": "flight", "name": "flight", "ts": 5, "args": {"done": 6}},
    {"ph": "e", "pid": 1, "tid": 1, "id": 3, "cat": "flight", "name": "flight", "ts": 22},
]}


@unittest.skipUnless(browser.find(), "chromium is not installed: apt-get install chromium")
@unittest.skipUnless(TARTAN, "give the path of tartan")
class PageInBrowser(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        for name, words in PAGES.items():
            ran = subprocess.run([TARTAN, "explore", *words, "-o", cls.file(name)], capture_output=True, text=True)
            assert ran.returncode in (0, 1), ran.stderr
        cls.browser = browser.Browser().__enter__()

    @classmethod
    def tearDownClass(cls):
        cls.browser.__exit__()
        cls.folder.cleanup()

    @classmethod
    def file(cls, name):
        return pathlib.Path(cls.folder.name) / f"{name}.html"

    def open(self, name, **how):
        return self.browser.open(self.file(name), **how)

    def model(self, name):
        text = self.file(name).read_text()
        return json.loads(re.search(r'id="model">(.*?)</script>', text, re.S).group(1))

    def test_loads_without_errors_and_requests(self):
        for name in PAGES:
            for dark in (False, True):
                with self.subTest(page=name, dark=dark):
                    page = self.open(name, dark=dark)
                    page.settle()
                    self.assertEqual(page.problems, [])
                    self.assertGreater(page.run("document.querySelectorAll('section').length"), 2)

    def test_fits_a_phone(self):
        for name in PAGES:
            with self.subTest(page=name):
                page = self.open(name, width=390, height=844, phone=True)
                page.settle()
                self.assertLessEqual(page.run("document.documentElement.scrollWidth"), 390)
                self.assertEqual(page.problems, [])

    def test_a_click_lights_the_lane_in_all_pictures(self):
        for name, figure, operand, place in (("one_mma", 2, "a", 35), ("gemm_sm80", 1, "d", 45),
                                             ("gemm_sm90a", 0, "d", 300)):
            with self.subTest(page=name):
                forms = self.model(name)["matrices"]["forms"]
                page = self.open(name)
                which = [each["operand"] for each in forms[figure]["operands"]].index(operand)
                drawn = page.run(f"figures[{figure}].pictures.findIndex((each) => each.operand.operand === '{operand}')")
                page.run(f"figures[{figure}].pictures[{drawn}].canvas.id = 'clicked'")
                x, y, size = page.run(
                    f"(() => {{ const p = figures[{figure}].pictures[{drawn}], [c, r] = p.at(p.cells[{place}]);"
                    " return [margin.left + (c + .5) * p.size, margin.top + (r + .5) * p.size, p.size]; })()")
                page.click("#clicked", x, y)
                page.mouse(2, 2, ("mouseMoved",))  # it stays when the pointer goes away
                page.settle()
                table = forms[figure]["operands"][which]
                elements = table["registers"] * table["per_register"]
                lane = table["at"].index(place) // elements
                self.assertEqual(page.run("state.lit.lane"), lane)
                lit = page.run("figures.map((f) => f.pictures.map((p) => [p.operand.operand, Number(p.canvas.dataset.lit)]))")
                for form, pictures in zip(forms, lit):
                    tables = {each["operand"]: each for each in form["operands"]}
                    for letter, count in pictures:
                        each = tables[letter]
                        own = each["registers"] * each["per_register"]
                        lanes = len(each["at"]) // own
                        places = each["at"][(lane % lanes) * own:(lane % lanes + 1) * own]
                        self.assertEqual(count, len(set(places)), (form["instruction"], letter))
                register = page.run("[...state.lit.registers][0]")
                self.assertTrue(register.startswith("%"))
                self.assertIn(f'"{register}"', page.run("byId('lit-registers').textContent"))
                page.key("Escape")
                self.assertIsNone(page.run("state.lit"))

    def test_sources_scroll_together(self):
        page = self.open("gemm_sm80")
        page.run("byId('code').scrollIntoView()")
        for line in (100, 240, 400, 130):
            page.run(f"Pane.active = panes.ptx; panes.ptx.scrollTo({line})")
            page.settle()
            key = page.run("panes.ptx.keys[nearestWithKey(panes.ptx.keys, panes.ptx.lineInView()) - 1]")
            self.assertEqual(str(page.run("shownSource")), key.split(":")[0])
            top, height, at = page.run(
                f"(() => {{ const p = panes.cpp, l = {key.split(':')[1]}; return [p.body.scrollTop, p.body.clientHeight, p.top(l)]; }})()")
            self.assertTrue(top <= at <= top + height, (line, key, top, at))
        page.run("Pane.active = panes.cpp; panes.cpp.scrollTo(99)")
        page.settle()
        self.assertTrue(page.run("panes.ptx.keys[nearestWithKey(panes.ptx.keys, panes.ptx.lineInView()) - 1]"))

    def test_a_click_selects_what_belongs_to_the_line(self):
        model, page = self.model("one_mma"), self.open("one_mma")
        page.click("#cpp-17 code")
        page.settle()
        marked = page.run("[...document.querySelectorAll('.ptx .row.selected')].map((each) => Number(each.dataset.line))")
        self.assertEqual(marked, [i + 1 for i, at in enumerate(model["ptx"]["at"]) if at == [0, 17]])
        page.click("#ptx-87 code")
        page.settle()
        self.assertEqual(page.run("[...document.querySelectorAll('.cpp .row.selected')].map((each) => each.dataset.line)"), ["19"])

    def test_search(self):
        model, page = self.model("gemm_sm80"), self.open("gemm_sm80")
        page.key("/")
        for letter in "cp.async":
            page.key(letter)
        page.settle()
        wanted = sum("cp.async" in line for line in model["ptx"]["text"].split("\n"))
        wanted += sum("cp.async" in line for line in model["sources"][page.run("shownSource")]["text"].split("\n"))
        self.assertGreater(wanted, 3)
        self.assertEqual(page.run("search.hits.length"), wanted)
        self.assertEqual(page.run("byId('found').textContent"), f"1 / {wanted}")
        page.key("Enter")
        self.assertEqual(page.run("byId('found').textContent"), f"2 / {wanted}")
        self.assertEqual(page.run("document.querySelectorAll('.row.now').length"), 1)

    def test_light_and_dark(self):
        back = "getComputedStyle(document.body).backgroundColor"
        light, dark = self.open("one_mma"), self.open("one_mma", dark=True)
        colours = light.run(back), dark.run(back)
        self.assertNotEqual(*colours)
        light.click("#theme")
        self.assertEqual(light.run(back), colours[1])
        light.key("t")
        self.assertEqual(light.run(back), colours[0])

    def test_findings_stand_at_their_lines(self):
        for name in ("race", "no_fence"):
            model, page = self.model(name), self.open(name)
            causes = {(each["id"], *sorted([each["line"], *each["others"]])) for each in model["findings"]}
            self.assertEqual(page.run("document.querySelectorAll('.card.finding').length"), len(causes))
            self.assertEqual(page.run("document.querySelectorAll('.same > p').length"), len(model["findings"]) - len(causes))
            for finding in model["findings"]:
                notes = page.run(f"(() => {{ const out = []; let at = byId('ptx-{finding['line']}').nextElementSibling;"
                                 " while (at?.classList.contains('note')) { out.push(at.textContent); at = at.nextElementSibling; } return out; })()")
                self.assertTrue(any(finding["message"] in note for note in notes), (finding, notes))
        # The wait is there, a barrier is not.
        page = self.open("race")
        text = page.run("document.querySelector('.card.finding .orders').textContent")
        self.assertIn("cp.async.wait_group", text)
        self.assertNotIn("bar.sync", text)
        page.key("n")
        page.settle()
        self.assertEqual(page.run("document.activeElement.closest('.pane')?.className"), "pane ptx")

    def test_wrong_results_show_their_values(self):
        model, page = self.model("wrong_results"), self.open("wrong_results")
        values = next(each["values"] for each in model["findings"] if each["id"] == "expectation")
        self.assertGreater(len(values), 2)
        shown = page.run("[...document.querySelectorAll('.values tbody tr')].map((each) => [...each.children].map((cell) => cell.textContent))")
        self.assertEqual(shown, [[str(each["index"]), each["expected"], each["found"]] for each in values])

    def test_a_deadlock_shows_where_it_stands(self):
        page = self.open("deadlock")
        page.settle()
        self.assertEqual(page.problems, [])
        waits, shown, last = page.run("[timelinePicture.cta.rows.flatMap((each) => each.slices).filter((each) => each.args.ended === false).length,"
                                      " timelinePicture.to, timelinePicture.last]")
        self.assertGreater(waits, 0)
        self.assertLess(shown, last)

    def test_says_what_of_wgmma_is_in_memory(self):
        text = self.open("gemm_sm90a").run("byId('fragments').textContent")
        self.assertIn("a and b are both in shared memory", text)

    def test_wavefronts_are_the_emulator_s(self):
        for name in PAGES:
            counts = self.open(name).run("model.accesses.map((each) => [each.wavefronts, wavefrontsOf(each).count])")
            for said, drawn in counts:
                self.assertEqual(said, drawn, name)
        page = self.open("one_mma")
        cured = page.run("wavefrontsOf(bankPicture.access, 32).count")
        self.assertEqual(cured, page.run("bankPicture.access.minimum"), "32-byte swizzle is the cure")
        page.run("bankPicture.arrange(32)")
        page.settle()
        self.assertEqual(page.run("bankPicture.steps.length"), cured)
        for _ in range(cured):
            page.run("bankPicture.show(bankPicture.step + 1)")
        self.assertIn(f"Phase {cured} of", page.run("bankPicture.caption.textContent"))

    def test_matrices_in_shared_memory(self):
        # sa is the product's A: who points at an element lights the lane that mma has it in.
        model, page = self.model("one_mma"), self.open("one_mma")
        line = next(each["line"] for each in model["matrices"]["uses"] if len(each["registers"].get("d", [])) == 4 and "a" not in each["registers"])
        page.run(f"bankPicture.choose(model.accesses.find((each) => each.line === {line})); selectLine({line})")
        self.assertEqual(page.run("[tilePicture.tile.name, tilePicture.met.size]"), ["sa", 256])
        product = next(form for form in model["matrices"]["forms"] if form["instruction"].startswith("mma"))
        table = next(each for each in product["operands"] if each["operand"] == "a")
        own = table["registers"] * table["per_register"]
        page.run("tilePicture.canvas.id = 'matrix'")
        for row, col in ((5, 9), (0, 0), (15, 15), (8, 3)):
            x, y = page.run(f"[tilePicture.left + ({col} + .5) * tilePicture.size, tilePicture.top + ({row} + .5) * tilePicture.size]")
            page.click("#matrix", x, y)
            page.settle()
            self.assertEqual(page.run("state.lit.lane"), table["at"].index(row * 16 + col) // own, (row, col))
            self.assertIn(f"sa[{row}, {col}]", page.run("byId('readout').textContent"))
            self.assertEqual(page.run("tilePicture.canvas.dataset.lit"), str(own))
            lit = page.run("figures.find((f) => f.product).pictures.find((p) => p.operand.operand === 'a').canvas.dataset.lit")
            self.assertEqual(lit, str(own))
            page.key("Escape")
        self.assertEqual(page.problems, [])
        for name, at in (("gemm_sm80", 0), ("gemm_sm90a", 1)):
            page = self.open(name)
            page.run(f"tilePicture.show(model.tiles[{at}], 1)")
            page.settle()
            self.assertEqual(page.problems, [])
            for tile in page.run("model.tiles.map((t) => [t.rows.length * t.cols.length * t.size, elementsOf(t).size * t.size, t.bytes, t.stages])"):
                self.assertEqual(tile[0], tile[1], "no two elements at one place")
                self.assertEqual(tile[0], tile[2], "stages without gaps")
                self.assertGreater(tile[3], 1)

    def test_screenshots_show_the_lane_maps(self):
        # Each element's colour on the screen is that of the lane that the map gives it, light and dark.
        for dark in (False, True):
            model, page = self.model("one_mma"), self.open("one_mma", dark=dark)
            palette = [tuple(each) for each in model["matrices"]["palette"]]
            figure = next(i for i, form in enumerate(model["matrices"]["forms"]) if form["instruction"].startswith("mma"))
            for table in model["matrices"]["forms"][figure]["operands"]:
                left, top, size = page.run(
                    f"(() => {{ const p = figures[{figure}].pictures.find((each) => each.operand.operand === '{table['operand']}');"
                    " if (!p) return [0, 0, 0]; p.canvas.id = 'shot-' + p.operand.operand; return [margin.left, margin.top, p.size]; })()")
                if not size:
                    continue  # c is drawn as d
                shown = page.pixels(f"#shot-{table['operand']}")
                own, seen = table["registers"] * table["per_register"], 0
                for i, place in enumerate(table["at"]):
                    row, col = divmod(place, table["cols"])
                    colour = shown[left + col * size + 1, top + (row + 1) * size - 4]
                    wanted = palette[i // own % 32]
                    self.assertLess(max(abs(a - b) for a, b in zip(colour, wanted)), 4, (table["operand"], row, col))
                    seen += 1
                self.assertEqual(seen, table["rows"] * table["cols"])

    def test_pages_have_their_structure(self):
        # Parts, and the pictures in each: tests/data/explore/structure.json; TARTAN_REBASE=1 writes it anew.
        script = ("[...document.querySelectorAll('main > section')].map((part) => `${part.id}: ${part.querySelectorAll('canvas').length} pictures,"
                  " ${part.querySelectorAll('.card.finding').length} findings`)")
        found = {name: self.open(name).run(script) for name in PAGES}
        path = ROOT / "tests/data/explore/structure.json"
        if os.environ.get("TARTAN_REBASE"):
            path.write_text(json.dumps(found, indent=1) + "\n")
        self.assertEqual(found, json.loads(path.read_text()))

    def test_timeline_draws_a_trace(self):
        page = self.open("race")
        page.run(f"model.timeline = {json.dumps(TRACE)}; byId('timeline')?.remove(); addTimeline()")
        page.settle()
        self.assertEqual(page.run("timelinePicture.ctas.map((each) => each.name)"), ["CTA 0,0,0"])
        self.assertEqual(page.run("timelinePicture.cta.rows.map((each) => each.name)"),
                         ["warp 0 (producer)", "warp 1 (consumer)", "mbarrier full"])
        self.assertEqual(page.run("timelinePicture.canvas.dataset.events"), "4")
        self.assertEqual(page.run("timelinePicture.cta.arrows.length"), 1)
        x = page.run("timelinePicture.x(8)")
        page.run("timelinePicture.canvas.id = 'drawn'")
        page.click("#drawn", x, page.run("timelinePicture.top + timelinePicture.height / 2"))
        self.assertEqual(page.run("state.line"), 22)
        self.assertIn("cp.async x4", page.run("timelinePicture.tip.textContent"))
        self.assertEqual(page.problems, [])

    def test_prints(self):
        page = self.open("one_mma")
        self.assertGreater(len(page.call("Page.printToPDF")["data"]), 50_000)


if __name__ == "__main__":
    unittest.main()
