#![no_main]
libfuzzer_sys::fuzz_target!(|data: &[u8]| ranpace_fuzz::lab_edit(data));
