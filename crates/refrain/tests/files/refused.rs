//! What is not done, and is said: nothing is touched that is not the run's own.

use std::fs;
use std::os::unix::fs::symlink;

use refrain::{Ask, Refrain};

use crate::both_databases;
use crate::export::{
    VISIBLE, WHEN, WINDOW, exports, failure, is_tidy, message, names, seen, stock, stocked, versioned,
};
use crate::shop::Shop;
use crate::support::TestDatabase;

async fn named(refrain: &Refrain, key: &str, name: &str) -> refrain::RunReport {
    let payload = serde_json::json!({ "name": name }).to_string();
    refrain.enqueue("export", key, Some(&payload)).await.unwrap();
    refrain.run(&format!("export#{key}"), Ask::Once).await.unwrap()
}

both_databases! {
    async fn s10_what_a_payload_says_chooses_no_directory(database) {
        let shop = Shop::of(database);
        shop.execute("create table items (id integer)").await;
        let publish = "[publish]\npath = \"out/{payload.name}/rows\"\n";
        shop.job("export", &format!("queue = true\nquery = \"select id from items\"\n{publish}"));
        let refrain = shop.open().await;
        let before = names(shop.root());
        let hostile = ["..", ".", "", "../../etc", "a/b", "/tmp", "a\\b", "a\nb", ".refrain.lock"];
        for (key, name) in hostile.into_iter().enumerate() {
            let said = message(&named(&refrain, &format!("k{key}"), name).await);
            assert!(said.contains("{payload.name}") && said.contains("part of a name"), "{name:?}: {said}");
        }
        assert_eq!(names(shop.root()), before);
        let report = named(&refrain, "good", "-rf $(id) ü").await;
        assert!(report.is_done(), "{:?}", report.run.message);
        assert!(shop.root().join("out/-rf $(id) ü/rows/part-0.csv").exists());
    }

    async fn s10_what_a_scope_is_called_chooses_no_directory(database) {
        let shop = Shop::of(database);
        shop.execute("create table orgs (id text); insert into orgs values ('acme'), ('..'), ('.hidden')").await;
        let publish = "[publish]\npath = \"out/dt={ds}/{scope}\"\n";
        let query = "query = \"select id from orgs where id = :scope\"";
        shop.job("export", &format!("{WHEN}scopes = \"select id from orgs\"\n{query}\n{publish}"));
        shop.run(WINDOW, Ask::Once).await;
        for scope in ["..", ".hidden"] {
            let said = failure(&shop, &format!("{WINDOW}/{scope}")).await;
            assert!(said.contains("begins with a dot"), "{said}");
        }
        assert!(shop.run(&format!("{WINDOW}/acme"), Ask::Again).await.is_done());
        assert_eq!(fs::read_to_string(shop.root().join("out/dt=2020-06-09/acme/part-0.csv")).unwrap(), "id\nacme\n");
        assert_eq!(names(shop.root().join("out")), ["dt=2020-06-09"]);
    }

    async fn what_somebody_else_has_put_there_stays(database) {
        let shop = versioned(database).await;
        stock(&shop, 1).await;
        let visible = shop.root().join(VISIBLE);
        shop.write(&format!("{VISIBLE}/precious"), "mine");
        let said = failure(&shop, WINDOW).await;
        assert!(said.contains("no link that Refrain has made") && said.contains("mv '"), "{said}");
        assert_eq!(fs::read_to_string(visible.join("precious")).unwrap(), "mine");
        fs::remove_dir_all(&visible).unwrap();

        fs::write(&visible, "mine").unwrap();
        assert!(failure(&shop, WINDOW).await.contains("no link that Refrain has made"));
        assert_eq!(fs::read_to_string(&visible).unwrap(), "mine");
        fs::remove_file(&visible).unwrap();

        symlink("elsewhere", &visible).unwrap();
        assert!(failure(&shop, WINDOW).await.contains("is a link to `elsewhere`"));
        assert_eq!(fs::read_link(&visible).unwrap().to_str(), Some("elsewhere"));
        fs::remove_file(&visible).unwrap();

        assert_eq!(names(shop.root().join("out")), [".refrain.lock"], "nothing is left of the failures");
        assert!(shop.run(WINDOW, Ask::Again).await.is_done());
        assert_eq!(seen(&shop), Some(stocked(1)));
    }

    async fn two_jobs_cannot_own_one_place(database) {
        let shop = versioned(database).await;
        stock(&shop, 1).await;
        shop.run(WINDOW, Ask::Once).await;
        let text = fs::read_to_string(shop.root().join("jobs/export.toml")).unwrap();
        shop.job("other", &text.replace("id, version", "id, 7 as version"));
        let said = failure(&shop, "other@2020-06-09").await;
        assert!(said.contains("the files of another run"), "{said}");
        assert_eq!(seen(&shop), Some(stocked(1)));
        fs::remove_file(shop.root().join(VISIBLE)).unwrap();
        assert!(shop.run("other@2020-06-09", Ask::Again).await.is_done());
        assert_eq!(seen(&shop), Some(stocked(7)));
    }

    async fn a_directory_that_cannot_be_made_is_said_and_what_was_there_stays(database) {
        let shop = versioned(database).await;
        stock(&shop, 1).await;
        shop.write("file", "mine");
        let text = fs::read_to_string(shop.root().join("jobs/export.toml")).unwrap();
        shop.job("export", &text.replace("out/", "file/").replace("attempts = 50", "attempts = 1"));
        let said = failure(&shop, WINDOW).await;
        assert!(said.contains("cannot be made") && said.contains("nothing was published"), "{said}");
        assert_eq!(fs::read_to_string(shop.root().join("file")).unwrap(), "mine");
    }

    async fn a_query_that_fails_leaves_what_people_read(database) {
        let shop = versioned(database).await;
        stock(&shop, 1).await;
        shop.run(WINDOW, Ask::Once).await;
        for (query, expected) in [
            ("select id, nothing from items", "nothing"),
            ("select id, id from items", "two columns `id`"),
            ("select id / (id - id) as q, abs(-9223372036854775807 - 1) as version from items", ""),
        ] {
            exports(&shop, query, "csv");
            let text = fs::read_to_string(shop.root().join("jobs/export.toml")).unwrap();
            shop.job("export", &text.replace("attempts = 50", "attempts = 1"));
            let said = failure(&shop, WINDOW).await;
            assert!(said.contains(expected), "{query}: {said}");
            assert_eq!(seen(&shop), Some(stocked(1)));
            assert!(is_tidy(&shop));
        }
    }
}
