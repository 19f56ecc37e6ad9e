//! Every statement of the ledger, by name.

use crate::database::statement::catalog;

catalog! {
    CHECKPOINT_ADVANCE = "sql/checkpoint/advance.sql",
    CHECKPOINT_BEGIN = "sql/checkpoint/begin.sql",
    CHECKPOINT_FIND = "sql/checkpoint/find.sql",
    FENCE_FIND = "sql/fence/find.sql",
    FENCE_FIND_MANY = "sql/fence/find_many.sql",
    FENCE_HOLD = "sql/fence/hold.sql",
    FENCE_RAISE = "sql/fence/raise.sql",
    FENCE_RAISE_MANY = "sql/fence/raise_many.sql",
    LEDGER_FIND = "sql/ledger/find.sql",
    LEDGER_OPEN = "sql/ledger/open.sql",
    PROJECT_ATTACH = "sql/project/attach.sql",
    PROJECT_FIND = "sql/project/find.sql",
    UNIT_CLAIM = "sql/unit/claim.sql",
    UNIT_CLAIM_MANY = "sql/unit/claim_many.sql",
    UNIT_CONVICT = "sql/unit/convict.sql",
    UNIT_FAIL = "sql/unit/fail.sql",
    UNIT_FAILED = "sql/unit/failed.sql",
    UNIT_FIND = "sql/unit/find.sql",
    UNIT_INSERT = "sql/unit/insert.sql",
    UNIT_LEFT = "sql/unit/left.sql",
    UNIT_PAST = "sql/unit/past.sql",
    UNIT_PAST_MANY = "sql/unit/past_many.sql",
    UNIT_RENEW = "sql/unit/renew.sql",
    UNIT_TRACE = "sql/unit/trace.sql",
    UNIT_UNPARK = "sql/unit/unpark.sql",
    UNIT_UPDATE = "sql/unit/update.sql",
}
