#![no_main]

use libfuzzer_sys::fuzz_target;
use reqwest_retry_rules_fuzz::check_header_text;

fuzz_target!(|data: &[u8]| check_header_text(data));
