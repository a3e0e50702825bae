package registry

import (
	"time"

	"github.com/weirlog/weir/shared/prune"
	"github.com/weirlog/weir/tenants/internal/retention"
)

// Tables are the room's tables whose rows age, for a prune.Pruner.
func Tables(clock func() time.Time, forget retention.Forget) []prune.Table {
	return []prune.Table{retention.Credentials{
		Table: "service_tokens", Bound: "100 in force of an organization, and 90 days of those that were revoked",
		Ended: "revoked_at", Clock: clock, Forget: forget,
	}}
}

// Fixed are the bounds of the room's other tables.
func Fixed() []prune.Bound {
	return []prune.Bound{
		{Table: "organizations", Keeps: "a row for each organization", By: "operators, who alone make them"},
		{Table: "projects", Keeps: "200 of an organization", By: "WEIR_MAX_PROJECTS"},
		{Table: "security_policies", Keeps: "a row for each organization", By: "its primary key"},
	}
}
