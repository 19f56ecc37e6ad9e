//! The connection of a publish is cut while the server is still committing, and the server
//! continues: a lookup of the result waits for that commit.
//!
//! On PostgreSQL only: a file has no server that could continue. A trigger that is deferred to the end of the
//! transaction notes that the publish is recorded, and waits for a lock of the test.

use sqlx::postgres::PgPool;
use sqlx::{Connection as _, Executor as _};

use crate::warehouse::{MODES, warehouse, well, window, written};
use refrain::Ask;
use refrain_harness::TestDatabase;
use refrain_harness::eventually::{DEADLINE, eventually};
use refrain_harness::project::TestProject;
use refrain_harness::proxy::Proxy;

const HOLD: &str = "create table public.records (target text);
    create function public.hold() returns trigger language plpgsql as $$ begin
        insert into public.records values (new.target);
        perform set_config('lock_timeout', '0', true);
        perform pg_advisory_xact_lock(77);
        return null;
    end $$;
    create constraint trigger hold after insert or update on refrain.publishes
        deferrable initially deferred for each row execute function public.hold();
    select pg_advisory_lock(77)";

/// A warehouse that is reached through a network; the store is not.
async fn far() -> (TestProject, Proxy) {
    let shop = warehouse(TestDatabase::postgres().await).await;
    let direct = shop.database.url();
    let network = Proxy::in_front_of(&direct).await;
    let name = direct.rsplit('/').next().unwrap();
    shop.settings(&direct, &format!("shop = \"{}\"", network.url(name)));
    shop.prepare().await;
    (shop, network)
}

async fn is_waiting(shop: &TestProject, what: &str) -> bool {
    let waiting = format!(
        "select query from pg_stat_activity where datname = current_database() \
         and wait_event_type = 'Lock' and {what}"
    );
    !shop.rows(&waiting).await.is_empty()
}

#[tokio::test]
async fn f4_a_publish_cut_off_during_its_commit_happens_once() {
    let clean = warehouse(TestDatabase::postgres().await).await;
    for mode in MODES {
        well(&clean, &window(mode), Ask::Once).await;
        let (shop, network) = far().await;
        let TestDatabase::Postgres { pool, .. } = &shop.database else { panic!("a server") };
        let mut holder = PgPool::acquire(pool).await.unwrap().detach();
        holder.execute(HOLD).await.unwrap();

        let mut process = shop.process(&["run", &window(mode)], &[]);
        let under_way = async || is_waiting(&shop, "wait_event = 'advisory' and query = 'COMMIT'").await;
        tokio::select! {
            () = eventually("the commit is in flight", DEADLINE, under_way) => {}
            ended = process.finish() => panic!("{mode}: {ended:?}"),
        }
        network.cut_all().await;
        let is_looked_up = async || is_waiting(&shop, "query <> 'COMMIT'").await;
        eventually("a lookup of the result waits", DEADLINE, is_looked_up).await;
        assert_eq!(shop.rows("select target from public.records").await, Vec::<String>::new(), "{mode}");
        holder.execute("select pg_advisory_unlock(77)").await.unwrap();

        let message = String::from_utf8(process.finish().await.stdout).unwrap();
        assert!(message.starts_with("did Ran done 1"), "{mode}: {message}");
        assert_eq!(written(&shop, mode).await, written(&clean, mode).await, "{mode}");
        assert_eq!(shop.rows("select target from public.records").await.len(), 1, "{mode}");
        holder.close().await.unwrap();
    }
}
