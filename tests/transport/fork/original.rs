//! A chain of the original, beside one of the fork.

use astral_reqwest_middleware as other;
use reqwest_middleware as own;

use super::astral::each as across;

#[path = "each.rs"]
pub mod each;
