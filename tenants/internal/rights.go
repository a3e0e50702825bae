package schema

import (
	"strings"

	"github.com/weirlog/weir/shared/pg"
)

// byNeed are the privileges that serving needs, by table.
var byNeed = map[string]string{
	"SELECT, INSERT, DELETE": "challenges devices webhook_answers withdrawals",
	"SELECT, INSERT, UPDATE, DELETE": "api_keys api_key_usage api_key_users audit_anchors deletions deliveries invitations members organizations passkeys " +
		"projects security_policies service_tokens sessions sign_in_failures webhooks",
	"SELECT, INSERT, DELETE, " + reduced: "audit_events",
}

// reduced are the columns of the audit that a deletion empties.
const reduced = "UPDATE (actor_name), UPDATE (address), UPDATE (client), UPDATE (request), UPDATE (target_name), UPDATE (before), UPDATE (after), " +
	"UPDATE (reduced_by)"

func rights() pg.Rights {
	all := pg.Rights{}
	for needed, tables := range byNeed {
		for table := range strings.FieldsSeq(tables) {
			all[table] = needed
		}
	}
	return all
}
