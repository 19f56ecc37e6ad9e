//! Commands of job files: their variables, their output, and the same job in three languages.

use refrain_harness::TestDatabase;
use refrain_harness::both_databases;
use refrain_harness::project::TestProject;

const WHEN: &str = r#"
    timezone = "Europe/Berlin"
    schedule = "@daily"
    window = "day"
    start = 2020-06-01
    catch-up = "all"
"#;

/// Orders as lines, and the total of a day.
const ORDERS: &str = "2020-06-09,acme,4\n2020-06-10,acme,1\n2020-06-09,beta,3\n";
const TOTAL: &str = "2020-06-09 7";

const TELL: &str = r#"#!/bin/sh
printf '%s\n' "$@"
pwd
env | grep ^REFRAIN_ | sort
echo "[$SECRET]"
"#;

const SHELL: &str = r#"#!/bin/sh
set -eu
awk -F, -v day="$1" '$1 == day { total += $3 } END { print day, total }' orders.csv > "shell-$1.part"
mv "shell-$1.part" "shell-$1"
cat "shell-$1"
"#;

const PYTHON: &str = r#"#!/usr/bin/env python3
import csv, os, sys
day = os.environ["REFRAIN_DS"]
with open("orders.csv") as orders:
    total = sum(int(row[2]) for row in csv.reader(orders) if row[0] == day)
with open(f"python-{day}.part", "w") as part:
    part.write(f"{day} {total}\n")
os.replace(f"python-{day}.part", f"python-{day}")
print(day, total)
print("one attempt more", file=sys.stderr)
"#;

async fn samples(shop: &TestProject) {
    shop.write("orders.csv", ORDERS);
    shop.program("total.sh", SHELL);
    shop.program("total.py", PYTHON);
    shop.job("shell", &format!("{WHEN}command = [\"./total.sh\", \"{{ds}}\"]\n"));
    shop.job("python", &format!("{WHEN}command = [\"./total.py\"]\n"));
    shop.execute("create table orders (day date, org text, amount integer)").await;
    shop.execute("create table totals (day date, total integer)").await;
    for line in ORDERS.lines() {
        let [day, org, amount] = *line.split(',').collect::<Vec<_>>().as_slice() else { panic!("{line}") };
        shop.execute(&format!("insert into orders values ('{day}', '{org}', {amount})")).await;
    }
    let sql = "insert into totals select day, sum(amount) from orders where day = :ds group by day";
    shop.job("sql", &format!("{WHEN}sql = \"{sql}\"\n"));
}

#[both_databases]
async fn h10_one_job_in_shell_python_or_sql_is_done_once_by_any_caller(database: TestDatabase) {
    let shop = TestProject::of(database);
    samples(&shop).await;
    shop.open().await.close().await;
    for (job, prints) in
        [("shell", "2020-06-09 7\n"), ("python", "2020-06-09 7\none attempt more\n"), ("sql", "")]
    {
        let run = format!("{job}@2020-06-09");
        let mut asking: Vec<_> = (0..3).map(|_| shop.process(&["run", &run], &[])).collect();
        let mut ran = 0;
        for process in &mut asking {
            let output = process.finish().await;
            let message = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(message.contains(" done 1\n"), "{message}{}", String::from_utf8_lossy(&output.stderr));
            ran += usize::from(message.starts_with("did Ran"));
        }
        assert_eq!(ran, 1, "{job}");
        let again = shop.done(&["run", &run]).await;
        let mut printed: Vec<&str> = again.lines().skip(1).collect();
        printed.sort_unstable();
        assert_eq!(again.lines().next(), Some("did Deduplicated done 1"), "{job}");
        assert_eq!(printed, prints.lines().collect::<Vec<_>>(), "{job}");
        shop.done(&["run", &run, "--again"]).await;
    }
    assert_eq!(shop.lines("shell-2020-06-09"), [TOTAL]);
    assert_eq!(shop.lines("python-2020-06-09"), [TOTAL]);
    assert_eq!(
        shop.rows("select cast(day as text) || ' ' || cast(total as text) from totals").await,
        [TOTAL]
    );
}

#[both_databases]
async fn a_command_gets_the_variables_of_its_run_only(database: TestDatabase) {
    let shop = TestProject::of(database);
    shop.program("tell.sh", TELL);
    let arguments = "\"{ds}\", \"from={window_start} to={window_end}\", \"{job} {version}\"";
    shop.job("export", &format!("{WHEN}version = 2\ncommand = [\"./tell.sh\", {arguments}]\n"));
    shop.open().await.close().await;
    let mut process = shop.process(&["run", "export@2020-06-09"], &[("SECRET", "swordfish")]);
    let message = String::from_utf8(process.finish().await.stdout).unwrap();
    let root = shop.root().canonicalize().unwrap().display().to_string();
    let message: Vec<String> = message.lines().map(|line| line.replace(&root, "ROOT")).collect();
    let key = message.iter().find(|line| line.starts_with("REFRAIN_IDEMPOTENCY_KEY=")).unwrap();
    assert!(key.len() > "REFRAIN_IDEMPOTENCY_KEY=".len() + 16, "{key}");
    let mark = message.iter().find(|line| line.starts_with("REFRAIN_SUPERVISOR=")).unwrap();
    let expected = [
        "did Ran done 1",
        "2020-06-09",
        "from=2020-06-08T22:00:00Z to=2020-06-09T22:00:00Z",
        "export 2",
        "ROOT",
        "REFRAIN_ATTEMPT=1",
        "REFRAIN_CURSOR=",
        "REFRAIN_DS=2020-06-09",
        key.as_str(),
        "REFRAIN_JOB=export",
        "REFRAIN_PAYLOAD=",
        "REFRAIN_PROJECT=ROOT",
        "REFRAIN_RUN=export@2020-06-08T22:00:00Z",
        "REFRAIN_SCOPE=",
        mark.as_str(),
        "REFRAIN_WATERMARK=",
        "REFRAIN_WINDOW_END=2020-06-09T22:00:00Z",
        "REFRAIN_WINDOW_START=2020-06-08T22:00:00Z",
        "[]",
    ];
    assert_eq!(message, expected);
}

#[both_databases]
async fn a_command_has_a_run_for_each_scope(database: TestDatabase) {
    let shop = TestProject::of(database);
    shop.execute("create table orgs (id integer); insert into orgs values (7), (40)").await;
    shop.program("note.sh", "#!/bin/sh\necho \"$REFRAIN_RUN $REFRAIN_SCOPE $1\" >> log\n");
    let scoped = "scopes = \"select id from orgs\"\ncommand = [\"./note.sh\", \"{scope}\"]\n";
    shop.job("digest", &format!("{WHEN}{scoped}"));
    shop.open().await.close().await;
    let message = shop.done(&["run", "digest@2020-06-09"]).await;
    assert!(message.starts_with("did Ran done 1"), "{message}");
    for run in ["digest@2020-06-09/7", "digest@2020-06-09/40"] {
        let message = shop.done(&["run", run]).await;
        assert!(message.starts_with("did Deduplicated done 1"), "{message}");
    }
    let text = shop.lines("log");
    assert_eq!(text, ["digest@2020-06-08T22:00:00Z/40 40 40", "digest@2020-06-08T22:00:00Z/7 7 7"]);
}
