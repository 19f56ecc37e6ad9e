//! Every statement of the ledger, by name.

use crate::database::statement::catalog;

catalog! {
    CHECKPOINT_ADVANCE = "sql/checkpoint/advance.sql",
    CHECKPOINT_BEGIN = "sql/checkpoint/begin.sql",
    CHECKPOINT_FIND = "sql/checkpoint/find.sql",
    FENCE_FIND = "sql/fence/find.sql",
    FENCE_HOLD = "sql/fence/hold.sql",
    FENCE_RAISE = "sql/fence/raise.sql",
    LEDGER_FIND = "sql/ledger/find.sql",
    LEDGER_OPEN = "sql/ledger/open.sql",
    PROJECT_ATTACH = "sql/project/attach.sql",
    PROJECT_FIND = "sql/project/find.sql",
    UNIT_FAIL = "sql/unit/fail.sql",
    UNIT_FAILED = "sql/unit/failed.sql",
    UNIT_FIND = "sql/unit/find.sql",
    UNIT_INSERT = "sql/unit/insert.sql",
    UNIT_UPDATE = "sql/unit/update.sql",
}
