//! A chain of the fork, beside one of the original.

use astral_reqwest_middleware as own;
use reqwest_middleware as other;

use super::original::each as across;

#[path = "each.rs"]
pub mod each;
