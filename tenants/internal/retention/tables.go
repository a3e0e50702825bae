package retention

import (
	"time"

	"github.com/weirlog/weir/shared/prune"
)

const day = 24 * time.Hour

const (
	sessionsKept    = day       // after they have expired
	failuresKept    = day       // after they were reported, which is longer than a report waits for the one before
	invitationsKept = 30 * day  // after they were accepted, revoked or expired: holders of the code get the reason
	endedKept       = 90 * day  // keys and tokens: their users get the reason of the refusal
	removedKept     = 100 * day // members: sessions, devices and failures of theirs are all over by then
)

// Tables are those that age, for a prune.Pruner. Credentials are passed to forget first.
func Tables(clock func() time.Time, forget Forget) []prune.Table {
	now := prune.Ago(0, clock)
	return []prune.Table{
		prune.Rows{
			Table: "sessions", Bound: "20 open ones of each member, and a day of those that have expired", Age: "expires_at",
			Before: prune.Ago(sessionsKept, clock),
		},
		prune.Rows{Table: "challenges", Bound: "until they are answered or over, which is minutes", Age: "expires_at", Before: now},
		prune.Rows{Table: "devices", Bound: "10 of each member, until they expire", Age: "expires_at", Before: now},
		prune.Rows{
			Table: "sign_in_failures", Bound: "a row for each member who has some, until a day after they were reported", Age: "told_at",
			Before: prune.Ago(failuresKept, clock), Only: "failed + refused = 0",
		},
		prune.Rows{
			Table: "invitations", Bound: "200 open ones of an organization, and 30 days of those that are over", Age: "least(accepted_at, revoked_at, expires_at)",
			Before: prune.Ago(invitationsKept, clock),
		},
		prune.Rows{
			Table: "passkeys", Bound: "20 of each member", Age: "created_at", Before: now,
			Only: `EXISTS (SELECT FROM members m WHERE m.organization = t.organization AND m.id = t.member AND m.removed_at IS NOT NULL)`,
		},
		prune.Rows{
			Table: "members", Bound: "500 of an organization, and 100 days of those who were removed", Age: "removed_at", Before: prune.Ago(removedKept, clock),
			Only: `NOT EXISTS (SELECT FROM sessions s WHERE s.organization = t.organization AND s.member = t.id)
				AND NOT EXISTS (SELECT FROM passkeys p WHERE p.organization = t.organization AND p.member = t.id)
				AND NOT EXISTS (SELECT FROM devices d WHERE d.organization = t.organization AND d.member = t.id)
				AND NOT EXISTS (SELECT FROM sign_in_failures f WHERE f.organization = t.organization AND f.member = t.id)`,
		},
		endedCredentials{
			table: "api_keys", keeps: "1,000 in force of an organization, and 90 days of those that have ended", forget: forget,
			ended: "least(revoked_at, expires_at)", before: prune.Ago(endedKept, clock),
		},
		endedCredentials{
			table: "service_tokens", keeps: "100 in force of an organization, and 90 days of those that were revoked", forget: forget,
			ended: "revoked_at", before: prune.Ago(endedKept, clock),
		},
		ofForgottenKeys("api_key_usage", "a row for each API key", now),
		ofForgottenKeys("api_key_users", "the 20 newest users of each API key", now),
	}
}

func ofForgottenKeys(table, keeps string, now func() time.Time) prune.Rows {
	return prune.Rows{
		Table: table, Bound: keeps, Age: "last_used_at", Before: now,
		Only: `NOT EXISTS (SELECT FROM api_keys k WHERE k.organization = t.organization AND k.id = t.api_key)`,
	}
}

// Fixed are the bounds of the others.
func Fixed() []prune.Bound {
	return []prune.Bound{
		{Table: "organizations", Keeps: "a row for each organization", By: "operators, who alone make them"},
		{Table: "deletions", Keeps: "a row of ids for each organization and project that was ever deleted", By: "its primary key"},
		{Table: "projects", Keeps: "200 of an organization", By: "WEIR_MAX_PROJECTS"},
		{Table: "security_policies", Keeps: "a row for each organization", By: "its primary key"},
	}
}
