#![no_main]

use libfuzzer_sys::fuzz_target;
use reqwest_retry_rules_fuzz::ConfigCase;

fuzz_target!(|case: ConfigCase| case.check());
