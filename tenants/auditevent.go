package tenants

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
	"time"
)

// AuditStart is the hash before the first line of an audit.
const AuditStart = "0000000000000000000000000000000000000000000000000000000000000000"

// An AuditEvent is one line of the audit of an organization, or of the
// Installation. Lines are numbered without gaps and chained by hashes.
type AuditEvent struct {
	Organization string
	Sequence     int64 // 1 for the first
	At           time.Time
	Action       string // "api_key.revoked"
	Target       Target
	Origin       Origin
	ActorName    string // at the time; empty where unknown
	Before       string // Fields.JSON
	After        string
	Stream       string // of its event
	Version      int64
	Position     int64
	Hash         string // SHA-256, hexadecimal
	ReducedBy    string // id of the deletion that removed names, addresses and fields; empty: none
}

// With adds a change to the line.
func (e AuditEvent) With(change Change) AuditEvent {
	e.At, e.Action, e.Target = change.At, change.Action, change.Target
	e.Before, e.After = change.Before.JSON(), change.After.JSON()
	return e
}

// Following links the line to the previous one, by that
// one's number and hash; 0 and AuditStart for the first.
func (e AuditEvent) Following(sequence int64, hash string) AuditEvent {
	e.Sequence = sequence + 1
	e.Hash = e.hash(hash)
	return e
}

// hash is SHA-256 of the previous hash and all parts of the line as
// netstrings (length, colon, bytes, comma): no byte can move between parts.
func (e AuditEvent) hash(before string) string {
	var canonical strings.Builder
	write := func(_, text string) {
		canonical.WriteString(strconv.Itoa(len(text)) + ":" + text + ",")
	}
	write("", before)
	e.each(write)
	sum := sha256.Sum256([]byte(canonical.String()))
	return hex.EncodeToString(sum[:])
}

// auditTime is the form of a hashed time: always with six digits of fraction.
const auditTime = "2006-01-02T15:04:05.000000Z07:00"

// each visits the parts of the line in the order of the hash.
func (e AuditEvent) each(visit func(name, text string)) {
	for _, part := range [][2]string{
		{"organization", e.Organization}, {"sequence", strconv.FormatInt(e.Sequence, 10)}, {"at", e.At.UTC().Format(auditTime)},
		{"action", e.Action}, {"actor_kind", string(e.Origin.Kind)}, {"actor", e.Origin.Actor}, {"actor_name", e.ActorName},
		{"role", string(e.Origin.Role)}, {"address", e.Origin.Address}, {"client", e.Origin.Client}, {"request", e.Origin.Request},
		{"target_kind", e.Target.Kind}, {"target", e.Target.ID}, {"target_name", e.Target.Name},
		{"before", e.Before}, {"after", e.After}, {"stream", e.Stream}, {"version", strconv.FormatInt(e.Version, 10)},
		{"position", strconv.FormatInt(e.Position, 10)},
	} {
		visit(part[0], part[1])
	}
}
