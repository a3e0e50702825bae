package contract

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
	"time"

	"github.com/weirlog/weir/shared/contract/tier"
)

// Headers of LogsAccepted besides the common ones.
const (
	HeaderProject     = "ce_project"
	HeaderEnvironment = "ce_environment"
	HeaderKey         = "ce_key"
	HeaderBatch       = "ce_batch"
	HeaderPart        = "ce_part"
	HeaderParts       = "ce_parts"
	HeaderFirst       = "ce_first"
	HeaderEntries     = "ce_entries"
	HeaderBytes       = "ce_bytes"
	HeaderErrors      = "ce_errors"
	HeaderRetention   = "ce_retention"
	HeaderRequest     = "ce_requestbytes"
	HeaderIdempotency = "ce_idempotency"
	HeaderDigest      = "ce_digest"
)

// ContentTypeLines is the content-type of a LogsAccepted: one
// compact JSON object a line.
const ContentTypeLines = "application/x-ndjson"

// LogsAccepted means: these entries were accepted. There is one record
// per accepted request, or per part of a request larger than one
// record. Such a request counts once all of its parts are in the log,
// in one partition (RecordKey). If one could not be published, the
// request was not acknowledged, and no part has an effect. An entry's
// identity is (Batch, First + its line).
type LogsAccepted struct {
	Batch string // UUIDv7 in its canonical text form, new for every request
	Part  int    // 1..Parts
	Parts int
	First int // index in the batch of this part's first entry, from 0

	Organization string
	Project      string
	Environment  string // of the key: prod, staging or dev
	Key          string // the API key's id, never the key
	Source       string
	Time         time.Time // when it was accepted

	Entries int   // lines in this part; 0: rules of the project left nothing of the request
	Bytes   int64 // charged: the lines without their newlines, and what rules have changed after the charge
	Errors  int   // entries with an error payload

	RetentionDays int   // see Retention
	RequestBytes  int64 // Bytes of all parts, if several; see Total

	Idempotency string // identifies (project, Idempotency-Key); empty without one
	Digest      string // identifies the request's body; set together with Idempotency
	Traceparent string

	Lines []byte // the accepted entries, compact, each ended by a newline
}

// ID returns the event's id: the same for every copy of a part.
func (l LogsAccepted) ID() string {
	return l.Batch + "/" + strconv.Itoa(l.Part)
}

// Checksum distinguishes this record from another of the same part: it
// covers the headers that say whose entries they are, and how many. The
// sum of several records' checksums is the same in any order.
func (l LogsAccepted) Checksum() uint64 {
	h := fnv.New64a()
	buffer := make([]byte, 0, 256)
	buffer = append(strconv.AppendInt(append(append(buffer, l.Batch...), '/'), int64(l.Part), 10), 0)
	for _, text := range [...]string{l.Organization, l.Project, l.Environment, l.Key} {
		buffer = append(append(buffer, text...), 0)
	}
	for _, number := range [...]int64{int64(l.Parts), int64(l.First), int64(l.Entries), l.Bytes, int64(l.Errors)} {
		buffer = append(strconv.AppendInt(buffer, number, 10), 0)
	}
	_, _ = h.Write(buffer)
	return h.Sum64()
}

// Retention returns for how many days the entries are kept: their
// organization's at acceptance, whatever its later tier. Records
// without it are older than the field, and have the longest.
func (l LogsAccepted) Retention() int { return cmp.Or(l.RetentionDays, tier.LongestRetentionDays) }

// EntryID returns an entry's id for clients: opaque, URL-safe, at
// most 64 characters.
func EntryID(batch string, index int) string {
	return strings.ReplaceAll(batch, "-", "") + "-" + strconv.Itoa(index)
}

// RecordKey returns the record's key on weir.logs.v1. A project is
// spread over sub-keys, so that a hot one is not bound to one
// partition. The copies of one idempotency key share a sub-key, so all
// consumers see them in one order and agree on which counts.
func (l LogsAccepted) RecordKey(spread int) string {
	if spread <= 1 {
		return l.Project
	}
	seed := l.Idempotency
	if seed == "" {
		seed = l.Batch
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(seed))
	return l.Project + ":" + strconv.FormatUint(uint64(h.Sum32())%uint64(spread), 10)
}

// Headers returns the wire form of everything but Lines.
func (l LogsAccepted) Headers() map[string]string {
	headers := map[string]string{
		HeaderSpecVersion:  SpecVersion,
		HeaderID:           l.ID(),
		HeaderType:         TypeLogsAccepted,
		HeaderSource:       l.Source,
		HeaderTime:         l.Time.UTC().Format(time.RFC3339Nano),
		HeaderContentType:  ContentTypeLines,
		HeaderOrganization: l.Organization,
		HeaderProject:      l.Project,
		HeaderEnvironment:  l.Environment,
		HeaderKey:          l.Key,
		HeaderBatch:        l.Batch,
		HeaderPart:         strconv.Itoa(l.Part),
		HeaderParts:        strconv.Itoa(l.Parts),
		HeaderFirst:        strconv.Itoa(l.First),
		HeaderEntries:      strconv.Itoa(l.Entries),
		HeaderBytes:        strconv.FormatInt(l.Bytes, 10),
		HeaderErrors:       strconv.Itoa(l.Errors),
	}
	if l.RetentionDays != 0 {
		headers[HeaderRetention] = strconv.Itoa(l.RetentionDays)
	}
	if l.RequestBytes != 0 {
		headers[HeaderRequest] = strconv.FormatInt(l.RequestBytes, 10)
	}
	setIfAny(headers, HeaderIdempotency, l.Idempotency)
	setIfAny(headers, HeaderDigest, l.Digest)
	setIfAny(headers, HeaderTraceparent, l.Traceparent)
	return headers
}

// ParseLogsAccepted reads a record of weir.logs.v1. header returns ""
// for a missing name. The result shares lines. A record that fails here
// can never be applied.
func ParseLogsAccepted(header func(name string) string, lines []byte) (LogsAccepted, error) {
	attributes, err := ParseAttributes(header)
	if err != nil {
		return LogsAccepted{}, err
	}
	if attributes.Type != TypeLogsAccepted {
		return LogsAccepted{}, fmt.Errorf("cannot read event of type %q: want %q", attributes.Type, TypeLogsAccepted)
	}
	n := numbers{header: header}
	logs := LogsAccepted{
		Batch:        header(HeaderBatch),
		Part:         int(n.read(HeaderPart)),
		Parts:        int(n.read(HeaderParts)),
		First:        int(n.read(HeaderFirst)),
		Organization: attributes.Organization,
		Project:      header(HeaderProject),
		Environment:  header(HeaderEnvironment),
		Key:          header(HeaderKey),
		Source:       attributes.Source,
		Time:         attributes.Time,
		Entries:      int(n.read(HeaderEntries)),
		Bytes:        n.read(HeaderBytes),
		Errors:       int(n.read(HeaderErrors)),
		Idempotency:  header(HeaderIdempotency),
		Digest:       header(HeaderDigest),
		Traceparent:  attributes.Traceparent,
		Lines:        lines,
	}
	if header(HeaderRetention) != "" {
		logs.RetentionDays = int(n.read(HeaderRetention))
	}
	if header(HeaderRequest) != "" {
		logs.RequestBytes = n.read(HeaderRequest)
	}
	return logs, errors.Join(n.err, logs.check())
}

// Total returns the charge for the whole request. Older parts have
// only their own.
func (l LogsAccepted) Total() int64 { return max(l.Bytes, l.RequestBytes) }

// Split calls each with every entry's compact text, in order, and its
// index in the batch.
func (l LogsAccepted) Split(each func(index int, entry []byte) error) error {
	rest := l.Lines
	for i := range l.Entries {
		entry, after, found := bytes.Cut(rest, []byte{'\n'})
		if !found {
			return fmt.Errorf("cannot split %s: has %d lines, want %d", l.ID(), i, l.Entries)
		}
		if err := each(l.First+i, entry); err != nil {
			return err
		}
		rest = after
	}
	if len(rest) > 0 {
		return fmt.Errorf("cannot split %s: %d bytes after line %d", l.ID(), len(rest), l.Entries)
	}
	return nil
}

func (l LogsAccepted) check() error {
	switch {
	case l.Organization == "" || l.Project == "" || !isUUID(l.Batch):
		return fmt.Errorf("cannot place event %q: organization %q, project %q, batch %q",
			l.ID(), l.Organization, l.Project, l.Batch)
	case l.Part < 1 || l.Part > l.Parts || l.First < 0 || l.Entries < 0 || l.Bytes < 0 || l.Errors < 0 || l.RequestBytes < 0:
		return fmt.Errorf("cannot read event %q: part %d of %d, first %d, entries %d, bytes %d, errors %d",
			l.ID(), l.Part, l.Parts, l.First, l.Entries, l.Bytes, l.Errors)
	case l.RetentionDays < 0 || l.RetentionDays > tier.MaxRetentionDays:
		return fmt.Errorf("cannot read event %q: retention of %d days is outside 1..%d", l.ID(), l.RetentionDays, tier.MaxRetentionDays)
	case (l.Idempotency == "") != (l.Digest == ""):
		return fmt.Errorf("cannot read event %q: idempotency %q without digest %q", l.ID(), l.Idempotency, l.Digest)
	}
	return nil
}

// isUUID reports whether text is a UUID in its canonical form:
// lower-case, with hyphens.
func isUUID(text string) bool {
	if len(text) != 36 {
		return false
	}
	for i, c := range []byte(text) {
		hyphen := i == 8 || i == 13 || i == 18 || i == 23
		digit := '0' <= c && c <= '9' || 'a' <= c && c <= 'f'
		if hyphen && c != '-' || !hyphen && !digit {
			return false
		}
	}
	return true
}

// numbers parses decimal headers and keeps the first failure.
type numbers struct {
	header func(string) string
	err    error
}

func (n *numbers) read(name string) int64 {
	value, err := strconv.ParseInt(n.header(name), 10, 64)
	if err != nil && n.err == nil {
		n.err = fmt.Errorf("cannot parse header %s=%q: %w", name, n.header(name), err)
	}
	return value
}

// MaxClient limits the stored part of a client's User-Agent, in bytes.
const MaxClient = 200

// KeyUsed is a fact on weir.ingest.v1, keyed by APIKey. It counts the
// uses of an API key at one process of ingest or grouping in the few
// seconds since its last such record; the counts of all records of a
// key add up. Every request with the key, in time and over TLS, is in
// one of the four counts. A process that dies loses the last seconds:
// the counts are for people, not for charges.
type KeyUsed struct {
	Organization    string     `json:"organization"`
	Project         string     `json:"project"`
	APIKey          string     `json:"api_key"`                     // its id
	Accepted        int64      `json:"accepted"`                    // requests with some or all entries accepted
	Rejected        int64      `json:"rejected"`                    // requests that failed for a reason other than the key
	Refused         int64      `json:"refused"`                     // requests that failed because the key is revoked or expired
	Read            int64      `json:"read,omitempty"`              // admitted requests to read; absent: none, or of a version that did not count them
	FirstAcceptedAt *time.Time `json:"first_accepted_at,omitempty"` // of Accepted; absent if that is 0
	LastUsedAt      time.Time  `json:"last_used_at"`
	Address         string     `json:"address,omitempty"` // of the last request: an IP address
	Client          string     `json:"client,omitempty"`  // its User-Agent; at most MaxClient bytes
}

// Ways to expose an API key.
const (
	// ExposedPlainHTTP: it arrived in plaintext at a socket of Weir,
	// visible to the network between.
	ExposedPlainHTTP = "plain_http"
	// ExposedForwarded: a trusted proxy reported that its client used
	// plain HTTP. A misconfigured proxy reports that of every request:
	// a reason to look, not to revoke.
	ExposedForwarded = "forwarded_proto"
)

// KeyExposed is a fact on weir.ingest.v1, keyed by APIKey: a valid key
// was sent in plaintext. It is published again while that continues.
type KeyExposed struct {
	Organization string    `json:"organization"`
	Project      string    `json:"project"`
	APIKey       string    `json:"api_key"` // its id
	How          string    `json:"how"`     // ExposedPlainHTTP or ExposedForwarded
	At           time.Time `json:"at"`
	Address      string    `json:"address,omitempty"` // of the request: an IP address
	Client       string    `json:"client,omitempty"`  // its User-Agent; at most MaxClient bytes
}

// Outcomes of a request to ingest.
const (
	OutcomeAccepted      = "accepted"
	OutcomeRejected      = "rejected"       // by its sender's fault; the reason is the answer's code
	OutcomeRateLimited   = "rate_limited"   // the reason is the level of the limit
	OutcomeQuotaExceeded = "quota_exceeded" // the reason is empty, ReasonSuspended, or the budget
	OutcomeOverloaded    = "overloaded"     // by Weir's fault, to be sent again; the reason is the answer's code

	// OutcomeDropped is of entries that never came: the client says in a
	// later request that it dropped them, and why.
	OutcomeDropped = "dropped_by_client"

	// OutcomeDroppedByRule is of entries of accepted requests that a rule
	// of the project left out; the reason is its kind.
	OutcomeDroppedByRule = "dropped_by_rule"
)

// ReasonSuspended means that the organization may not send anything.
const ReasonSuspended = "suspended"

// The budget of the project, or of the key, does not cover the request.
const (
	ReasonProjectBudget = "project_budget"
	ReasonKeyBudget     = "key_budget"
)

// Outcomes returns all outcomes.
func Outcomes() []string {
	return []string{OutcomeAccepted, OutcomeRejected, OutcomeRateLimited, OutcomeQuotaExceeded, OutcomeOverloaded, OutcomeDropped, OutcomeDroppedByRule}
}

// RequestsCounted is a fact on weir.outcomes.v1, keyed by Organization.
// It counts the outcomes of an organization's requests at one process
// of ingest since its last such record. The counts of all records add
// up; a record published twice has the same Process and Sequence, and
// counts once. A process that dies loses what it has not published.
// Charges follow weir.logs.v1, not these counts.
type RequestsCounted struct {
	Organization string         `json:"organization"`
	Process      string         `json:"process"`  // a run of ingest
	Sequence     int64          `json:"sequence"` // grows with the process's records of an organization, perhaps by more than one
	From         time.Time      `json:"from"`     // when the first of the requests ended
	To           time.Time      `json:"to"`       // none ended later
	Counts       []RequestCount `json:"counts"`
}

// A RequestCount counts a key's requests with the same outcome. With
// too many keys, project, key and environment are absent.
type RequestCount struct {
	Project     string `json:"project,omitempty"`
	APIKey      string `json:"api_key,omitempty"` // its id
	Environment string `json:"environment,omitempty"`
	Outcome     string `json:"outcome"`
	Reason      string `json:"reason,omitempty"`
	Requests    int64  `json:"requests"`
	Entries     int64  `json:"entries"`               // as far as read
	Bytes       int64  `json:"bytes"`                 // of entries as charged; of requests refused before, received or announced bytes
	KeyInBody   int64  `json:"key_in_body,omitempty"` // of Requests: with the key in the body, which is deprecated
}

// QuotaRefused is a fact on weir.outcomes.v1, keyed by Organization: the
// quota did not cover a request. A key's first refusal is published at
// once, later ones are gathered for a while into one fact about the last.
type QuotaRefused struct {
	Organization string    `json:"organization"`
	Project      string    `json:"project"`
	APIKey       string    `json:"api_key"` // its id
	Environment  string    `json:"environment"`
	RequestID    string    `json:"request_id"`
	At           time.Time `json:"at"`
	Bytes        int64     `json:"bytes"`     // of the request, as in RequestCount
	Remaining    int64     `json:"remaining"` // bytes left of the quota, or of the budget that Reason names
	PeriodStart  time.Time `json:"period_start"`
	Quota        int64     `json:"quota"`            // or budget, of the period, as ingest knew it
	Since        int64     `json:"since,omitempty"`  // Raises of the account, or Since of the budget; 0: not known
	Exhausts     bool      `json:"exhausts"`         // this Quota allows nothing more in the period, however small
	Requests     int64     `json:"requests"`         // refusals since the last fact; only the last is described
	Reason       string    `json:"reason,omitempty"` // as in RequestCount
}
