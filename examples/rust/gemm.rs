// SPDX-License-Identifier: Apache-2.0
// A 64 x 64 x 64 product in Rust: rustc gemm.rs -L PREFIX/lib -l tartan
use std::ffi::{c_char, c_void, CStr, CString};
use std::ptr::{null, null_mut};

#[repr(C)]
struct Argument {
    value: *const c_void,
    size: usize,
    extent: u64,
}

type Handle = *mut c_void; // an error too
type Text = *const c_char;

extern "C" {
    fn tartan_error_text(error: Handle) -> Text;
    fn tartan_open(name: Text, options: Text, out: *mut Handle) -> Handle;
    fn tartan_compile(name: Text, target: Text, options: Text, out: *mut Handle) -> Handle;
    fn tartan_device_arch(device: Handle) -> Text;
    fn tartan_load(device: Handle, kernel: Handle, out: *mut Handle) -> Handle;
    fn tartan_allocate(device: Handle, bytes: usize, out: *mut Handle) -> Handle;
    fn tartan_buffer_address(buffer: Handle) -> u64;
    fn tartan_write(buffer: Handle, offset: usize, from: *const c_void, bytes: usize) -> Handle;
    fn tartan_read(buffer: Handle, offset: usize, to: *mut c_void, bytes: usize) -> Handle;
    fn tartan_launch(kernel: Handle, options: Handle, of: *const Argument, count: usize) -> Handle;
}

unsafe fn check(error: Handle) {
    if !error.is_null() {
        panic!("{}", CStr::from_ptr(tartan_error_text(error)).to_str().unwrap())
    }
}

fn argument(address: &u64, extent: u64) -> Argument {
    Argument { value: (address as *const u64).cast(), size: 8, extent }
}

fn main() {
    let text = |words: &str| CString::new(words).unwrap();
    let (mut device, mut kernel, mut gemm) = (null_mut(), null_mut(), null_mut());
    let mut values = [vec![1f32; 64 * 64], vec![2f32; 64 * 64], vec![0f32; 64 * 64]];
    let mut buffers = [null_mut(); 3];
    unsafe {
        check(tartan_open(text("auto").as_ptr(), null(), &mut device));
        let options = text(r#"{"m": 64, "n": 64, "k": 64, "type": "f32"}"#);
        let arch = tartan_device_arch(device);
        check(tartan_compile(text("gemm").as_ptr(), arch, options.as_ptr(), &mut kernel));
        check(tartan_load(device, kernel, &mut gemm));
        for (buffer, from) in buffers.iter_mut().zip(&values) {
            check(tartan_allocate(device, 4 * from.len(), buffer));
            check(tartan_write(*buffer, 0, from.as_ptr().cast(), 4 * from.len()));
        }
        let addresses = buffers.map(|buffer| tartan_buffer_address(buffer));
        let arguments = addresses.each_ref().map(|at| argument(at, 4 * 64 * 64));
        check(tartan_launch(gemm, null_mut(), arguments.as_ptr(), 3));
        check(tartan_read(buffers[2], 0, values[2].as_mut_ptr().cast(), 4 * 64 * 64));
    }
    assert!(values[2].iter().all(|&x| x == 128.0));
    println!("64 x 64 x 64: right");
}
