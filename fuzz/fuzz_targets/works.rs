#![no_main]

use libfuzzer_sys::fuzz_target;
use reqwest_retry_rules_fuzz::WorkCase;

fuzz_target!(|case: WorkCase| case.check());
