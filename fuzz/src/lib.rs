//! What the targets ask of the inputs that the fuzzer makes up. The answers to compare with are
//! those of the model of `tests/support/model.rs`.

#[path = "../../tests/support/model.rs"]
mod model;

mod case;
mod retry_config;
mod text;
mod works;

pub use case::Case;
pub use retry_config::ConfigCase;
pub use text::{check_config_text, check_header_text};
pub use works::WorkCase;
