//! The table of clients, `validation/clients/clients.toml`.

use crate::project;
use anyhow::{Context, Result, bail};
use serde::Deserialize;
use std::path::PathBuf;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    client: Vec<Client>,
}

/// One package of Python that calls CUDA, and the script that checks it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Client {
    /// How it is called, here and on the command line.
    pub name: String,
    /// Its script, beside the table.
    pub script: String,
    /// How many checks the script has, those that lack something included.
    pub checks: usize,
    /// Every package of its environment, as `name==version`.
    #[serde(default)]
    pub packages: Vec<String>,
    /// The client whose environment it uses, where it has no packages of its own.
    pub environment: Option<String>,
    /// Whether its script starts simulations itself, with the Python package, instead of running under one.
    #[serde(default)]
    pub alone: bool,
    /// Why none of its checks can pass, in one sentence, and the words with which its script fails.
    pub lacks: Option<Lacks>,
}

/// Why a client cannot run.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lacks {
    /// One sentence for the reader.
    pub why: String,
    /// What the run must say, so that the sentence cannot go stale.
    pub says: String,
}

impl Client {
    /// Where its virtual environment is.
    pub fn environment(&self) -> PathBuf {
        let name = self.environment.as_ref().unwrap_or(&self.name);
        project::local().join("clients").join(name)
    }
}

/// Where table and scripts are.
pub fn folder() -> PathBuf {
    project::root().join("validation/clients")
}

/// All clients, in the table's order.
pub fn all() -> Result<Vec<Client>> {
    let path = folder().join("clients.toml");
    let text = std::fs::read_to_string(&path)
        .with_context(|| format!("cannot read {}", path.display()))?;
    read(&text).with_context(|| project::shown(&path))
}

/// The clients of a table, checked; those with another's environment get its packages.
fn read(text: &str) -> Result<Vec<Client>> {
    let mut clients = toml::from_str::<Table>(text)?.client;
    let owners = clients.clone();
    for client in &mut clients {
        let name = &client.name;
        if let Some(owner) = &client.environment {
            let found = owners.iter().find(|other| &other.name == owner);
            let Some(found) = found.filter(|_| client.packages.is_empty()) else {
                bail!(
                    "`{name}` wants the environment of `{owner}`: there must be one, and no packages beside it"
                );
            };
            client.packages = found.packages.clone();
        }
        if client.packages.is_empty() {
            bail!("`{name}` has neither packages nor the environment of another client");
        }
        if let Some(package) = client.packages.iter().find(|package| !is_pinned(package)) {
            bail!("`{name}`: `{package}` is not pinned; write name==version");
        }
    }
    Ok(clients)
}

fn is_pinned(package: &str) -> bool {
    package.split_once("==").is_some_and(|(name, version)| {
        !name.is_empty() && !version.is_empty() && !version.contains('*')
    })
}

/// Those that are named, in the table's order; all where none is.
pub fn chosen(clients: Vec<Client>, names: &[String]) -> Result<Vec<Client>> {
    for name in names {
        if !clients.iter().any(|client| &client.name == name) {
            let known: Vec<&str> = clients.iter().map(|client| client.name.as_str()).collect();
            bail!("no client is called `{name}`; known: {}", known.join(", "));
        }
    }
    let wanted = |client: &Client| names.is_empty() || names.contains(&client.name);
    Ok(clients.into_iter().filter(wanted).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &str = "
        [[client]]
        name = 'a'
        script = 'a.py'
        checks = 1
        packages = ['x==1.0']
        [[client]]
        name = 'b'
        script = 'b.py'
        checks = 2
        environment = 'a'";

    #[test]
    fn every_client_of_the_project_has_its_script_and_pinned_packages() {
        let clients = all().expect("the table is good");
        assert!(clients.len() > 5);
        for client in clients {
            assert!(folder().join(&client.script).exists(), "{}", client.script);
        }
    }

    #[test]
    fn an_environment_can_be_shared() {
        let clients = read(TWO).expect("a good table");
        assert_eq!(clients[1].packages, ["x==1.0"]);
        assert_eq!(clients[0].environment(), clients[1].environment());
    }

    #[test]
    fn faults_of_a_table_are_named() {
        let fault = |text: &str| format!("{:#}", read(text).expect_err("a bad table"));
        assert!(fault(&TWO.replace("==1.0", ">=1.0")).contains("`x>=1.0` is not pinned"));
        assert!(
            fault(&TWO.replace("environment = 'a'", "environment = 'c'"))
                .contains("environment of `c`")
        );
        assert!(fault(&TWO.replace("environment = 'a'", "")).contains("`b` has neither packages"));
    }

    #[test]
    fn clients_are_chosen_by_name() {
        let clients = read(TWO).expect("a good table");
        assert_eq!(chosen(clients.clone(), &[]).expect("all").len(), 2);
        let one = chosen(clients.clone(), &["b".into()]).expect("one");
        assert_eq!(one[0].name, "b");
        let error = chosen(clients, &["c".into()]).expect_err("none");
        assert_eq!(error.to_string(), "no client is called `c`; known: a, b");
    }
}
