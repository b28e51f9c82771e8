#![no_main]

use libfuzzer_sys::fuzz_target;
use reqwest_retry_rules_fuzz::Case;

fuzz_target!(|case: Case| case.check());
