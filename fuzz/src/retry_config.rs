//! A whole configuration, and the rule that each URL has by it.

use http::HeaderName;
use libfuzzer_sys::arbitrary::{Arbitrary, Result, Unstructured};
use reqwest::Url;
use reqwest_retry_rules::{RetryConfig, RetryPolicy, RetryRule, RoutePattern};
use serde_json::{Map, Value, json};

use crate::case;

/// Reads a configuration from TOML and from JSON. What can be read makes a policy, has the rules that
/// its routes say, and goes out and in again. A line that is a URL is looked up.
pub fn check_retry_config_text(text: &str) {
    let urls: Vec<Url> = text.lines().filter_map(|line| line.parse().ok()).collect();
    match toml::from_str::<RetryConfig>(text) {
        Ok(config) => check_config(&config, &urls),
        Err(error) => assert_ne!(error.to_string(), ""),
    }
    match serde_json::from_str::<RetryConfig>(text) {
        Ok(config) => check_config(&config, &urls),
        Err(error) => assert_ne!(error.to_string(), ""),
    }
}

fn check_config(config: &RetryConfig, urls: &[Url]) {
    let written = serde_json::to_value(config).unwrap();
    assert_eq!(config, &serde_json::from_value(written.clone()).unwrap());
    assert_eq!(config, &serde_json::from_str(&written.to_string()).unwrap());
    for text in [toml::to_string(config), toml::to_string_pretty(config)] {
        assert_eq!(config, &toml::from_str(&text.unwrap()).unwrap());
    }
    let policy = RetryPolicy::from(config.clone());
    assert_eq!(policy.rule(), config.rule());
    let routes = Routes::written(&written);
    for url in routes.urls().iter().chain(urls) {
        let expected = routes.rule_for(url).unwrap_or(config.rule());
        assert_eq!(policy.rule_for(url), expected, "{url}");
    }
}

/// A configuration whose parts are mostly good, and URLs to ask it about.
#[derive(Debug)]
pub struct ConfigCase {
    /// What it says beside the rule and the routes.
    settings: Map<String, Value>,
    /// What it says of the rule, and the rule from which that differs.
    rule: (Map<String, Value>, RetryRule),
    routes: Vec<RouteCase>,
    urls: Vec<Url>,
}

#[derive(Debug)]
struct RouteCase {
    hosts: Vec<String>,
    paths: Vec<String>,
    rule: Map<String, Value>,
    preset: Option<RetryRule>,
}

impl ConfigCase {
    /// Reads it, and compares each route's rule with that of the file with the route laid over it.
    pub fn check(&self) {
        let config = serde_json::from_value::<RetryConfig>(self.written());
        let Some(routes) = self.expected() else {
            assert_ne!(config.unwrap_err().to_string(), "");
            return;
        };
        let config = config.unwrap();
        // Numbers above `i64::MAX` are none in a TOML value.
        if let Ok(text) = toml::to_string(&self.written()) {
            assert_eq!(config, toml::from_str(&text).unwrap());
        }
        check_config(&config, &self.urls);
        let policy = RetryPolicy::from(config.clone());
        for url in routes.urls().iter().chain(&self.urls) {
            let expected = routes.rule_for(url).unwrap_or(config.rule());
            assert_eq!(policy.rule_for(url), expected, "{url}");
        }
    }

    /// As it stands in a file.
    fn written(&self) -> Value {
        let mut all = self.settings.clone();
        all.extend(self.rule.0.clone());
        if !self.routes.is_empty() {
            let routes = self.routes.iter().map(|route| {
                let mut table = route.rule.clone();
                table.insert("hosts".to_owned(), json!(route.hosts));
                table.insert("paths".to_owned(), json!(route.paths));
                Value::Object(table)
            });
            all.insert("routes".to_owned(), routes.collect());
        }
        Value::Object(all)
    }

    /// The routes that it should be read as, if it is good.
    fn expected(&self) -> Option<Routes> {
        let (said, preset) = &self.rule;
        let base = laid_over(preset, said)?;
        let routes = self.routes.iter().map(|route| {
            let hosts = route.hosts.iter().map(|host| {
                let pattern: RoutePattern = host.parse().ok()?;
                Some(pattern.to_string())
            });
            let paths = route.paths.iter().map(|path| {
                let pattern: RoutePattern = format!("host{path}").parse().ok()?;
                Some(pattern.to_string().strip_prefix("host")?.to_owned())
            });
            Some(Route {
                hosts: hosts.collect::<Option<Vec<_>>>()?,
                paths: paths.collect::<Option<Vec<_>>>()?,
                rule: laid_over(route.preset.as_ref().unwrap_or(&base), &route.rule)?,
            })
        });
        routes.collect::<Option<Vec<_>>>().map(Routes)
    }
}

/// The rule that differs from `base` in what is said, inside of its tables too.
fn laid_over(base: &RetryRule, said: &Map<String, Value>) -> Option<RetryRule> {
    let Value::Object(mut rule) = serde_json::to_value(base).unwrap() else {
        panic!("a rule is a table");
    };
    for (key, value) in said {
        let value = match (rule.remove(key), value) {
            (Some(Value::Object(mut table)), Value::Object(said)) => {
                table.extend(said.clone());
                Value::Object(table)
            }
            (_, said) => said.clone(),
        };
        rule.insert(key.clone(), value);
    }
    rule.remove("preset");
    serde_json::from_value(Value::Object(rule)).ok()
}

/// A simple reading of routes as they are written: texts are compared.
struct Routes(Vec<Route>);

struct Route {
    hosts: Vec<String>,
    paths: Vec<String>,
    rule: RetryRule,
}

impl Routes {
    /// Those of a configuration that was written out: all in it is as a URL has it.
    fn written(config: &Value) -> Routes {
        let texts = |texts: Option<Value>| -> Vec<String> {
            texts.map_or(Vec::new(), |texts| serde_json::from_value(texts).unwrap())
        };
        let routes = config.get("routes").and_then(Value::as_array);
        let routes = routes.into_iter().flatten().map(|route| {
            let mut rule = route.as_object().unwrap().clone();
            Route {
                hosts: texts(rule.remove("hosts")),
                paths: texts(rule.remove("paths")),
                rule: serde_json::from_value(Value::Object(rule)).unwrap(),
            }
        });
        Routes(routes.collect())
    }

    fn rule_for(&self, url: &Url) -> Option<&RetryRule> {
        let has_host = |host: &String| matches_host(host, url);
        let has_path = |path: &String| matches_path(path, url);
        let route = self.0.iter().find(|route| {
            route.hosts.iter().any(has_host)
                && (route.paths.is_empty() || route.paths.iter().any(has_path))
        })?;
        Some(&route.rule)
    }

    /// URLs that are of a route, or nearly.
    fn urls(&self) -> Vec<Url> {
        let mut urls = Vec::new();
        for route in self.0.iter().take(8) {
            let paths = route.paths.iter().map(String::as_str).take(4);
            for path in paths.chain([""]) {
                for host in route.hosts.iter().take(4) {
                    for below in ["a", "a.b", ""] {
                        let host = host.replacen('*', below, 1);
                        for (scheme, end) in [("http", ""), ("https", "/x"), ("http", "x?y")] {
                            let url = format!("{scheme}://{host}{path}{end}");
                            urls.extend(url.parse::<Url>());
                        }
                    }
                }
            }
        }
        urls
    }
}

fn matches_host(pattern: &str, url: &Url) -> bool {
    let Some(host) = url.host_str() else {
        return false;
    };
    let host = host.strip_suffix('.').unwrap_or(host);
    // An IPv6 address has colons too, and ends in a bracket.
    let (name, port) = match pattern.rsplit_once(':') {
        Some((name, port)) if !port.ends_with(']') => (name, Some(port)),
        _ => (pattern, None),
    };
    let port_matches =
        port.is_none_or(|port| url.port_or_known_default() == Some(port.parse().unwrap()));
    let name_matches = match name.strip_prefix('*') {
        Some(end) => host
            .strip_suffix(end)
            .is_some_and(|start| !start.is_empty()),
        None => host == name,
    };
    port_matches && name_matches
}

fn matches_path(prefix: &str, url: &Url) -> bool {
    let segments = |path: &'_ str| -> Vec<String> { path.split('/').map(str::to_owned).collect() };
    segments(url.path()).starts_with(&segments(prefix.trim_end_matches('/')))
}

impl<'a> Arbitrary<'a> for ConfigCase {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        let preset = preset(u)?;
        let mut rule = part_of_a_rule(u)?;
        if let Some((name, _)) = &preset {
            rule.insert("preset".to_owned(), json!(name));
        }
        Ok(ConfigCase {
            settings: settings(u)?,
            rule: (rule, preset.map_or_else(RetryRule::never, |(_, rule)| rule)),
            routes: case::list(u, route)?,
            urls: case::list(u, url)?.into_iter().flatten().collect(),
        })
    }
}

fn route(u: &mut Unstructured<'_>) -> Result<RouteCase> {
    let preset = preset(u)?;
    let mut rule = part_of_a_rule(u)?;
    if let Some((name, _)) = &preset {
        rule.insert("preset".to_owned(), json!(name));
    }
    let mut hosts = case::list(u, host)?;
    hosts.push(host(u)?);
    Ok(RouteCase {
        hosts,
        paths: case::list(u, path)?,
        rule,
        preset: preset.map(|(_, rule)| rule),
    })
}

fn preset(u: &mut Unstructured<'_>) -> Result<Option<(&'static str, RetryRule)>> {
    Ok(match u.int_in_range(0..=3)? {
        0 => Some(("never", RetryRule::never())),
        1 => Some(("transient", RetryRule::transient())),
        _ => None,
    })
}

/// Some of the keys of a rule. Those of its tables are left out one by one.
fn part_of_a_rule(u: &mut Unstructured<'_>) -> Result<Map<String, Value>> {
    let Value::Object(rule) = serde_json::to_value(case::rule(u)?).unwrap() else {
        panic!("a rule is a table");
    };
    let mut part = Map::new();
    for (key, value) in rule {
        let value = match value {
            Value::Object(table) if ["retry_after", "backoff", "limits"].contains(&&*key) => {
                let mut some = Map::new();
                for (key, value) in table {
                    if u.arbitrary()? {
                        some.insert(key, value);
                    }
                }
                Value::Object(some)
            }
            value => value,
        };
        if u.ratio(1, 4)? {
            part.insert(key, value);
        }
    }
    Ok(part)
}

/// What is in a file beside the rule and the routes; all of it is good.
fn settings(u: &mut Unstructured<'_>) -> Result<Map<String, Value>> {
    let mut settings = Map::new();
    let mut set = |key: &str, value: Value| {
        settings.insert(key.to_owned(), value);
    };
    for key in ["total_timeout_ms", "attempt_timeout_ms", "head_timeout_ms"] {
        if u.ratio(1, 4)? {
            set(key, json!(u.int_in_range(1..=u64::MAX)?));
        }
    }
    for key in ["drain_limit", "complete_body"] {
        if u.ratio(1, 4)? {
            set(key, json!(u.arbitrary::<usize>()?));
        }
    }
    for key in ["attempt_header", "idempotency_key"] {
        if u.ratio(1, 4)? {
            set(key, json!(HeaderName::as_str(&case::name(u)?)));
        }
    }
    match u.int_in_range(0..=3)? {
        0 => set("budget", json!("off")),
        1 => {
            let ratio = u.int_in_range(0..=1000)?;
            set("budget", json!({ "ratio": ratio }));
        }
        _ => {}
    }
    if u.ratio(1, 4)? {
        let (max_ms, spread) = (u.arbitrary::<u64>()?, u.arbitrary::<u32>()?);
        set(
            "pause_origins",
            json!({ "max_ms": max_ms, "spread": spread }),
        );
    }
    Ok(settings)
}

fn host(u: &mut Unstructured<'_>) -> Result<String> {
    let star = match u.int_in_range(0..=2)? {
        0 => "*.",
        _ => "",
    };
    let names = [
        "a.test",
        "b.a.test",
        "A.Test.",
        "localhost",
        "127.1",
        "127.0.0.1",
        "[::1]",
        "[0::1]",
        "bücher.test",
        "xn--bcher-kva.test",
        "a_b",
        "0x7f.1",
        "ſ.test",
    ];
    let name = match u.ratio(7, 8)? {
        true => (*u.choose(&names)?).to_owned(),
        false => letters(u, &['a', '.', '*', '-', '1', ':', '[', ']', 'ß', '%'])?,
    };
    let port = match u.int_in_range(0..=4)? {
        0 => ":80".to_owned(),
        1 => ":443".to_owned(),
        2 => format!(":{}", u.arbitrary::<u16>()?),
        _ => String::new(),
    };
    Ok(format!("{star}{name}{port}"))
}

fn path(u: &mut Unstructured<'_>) -> Result<String> {
    let letters = letters(u, &['a', 'b', '/', '/', '.', '%', '2', 'e', 'ü', '~', '|'])?;
    Ok(format!("/{letters}"))
}

fn url(u: &mut Unstructured<'_>) -> Result<Option<Url>> {
    let schemes = ["http", "https", "HTTPS", "ftp", "ws", "data", "file", "x"];
    let (scheme, host) = (*u.choose(&schemes)?, host(u)?.replace('*', "a"));
    let path = path(u)?;
    Ok(format!("{scheme}://{host}{path}").parse().ok())
}

fn letters(u: &mut Unstructured<'_>, letters: &[char]) -> Result<String> {
    (0..u.int_in_range(0..=8)?)
        .map(|_| u.choose(letters).copied())
        .collect()
}
