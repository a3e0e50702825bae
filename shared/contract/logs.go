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

	Entries int   // lines in this part, at least 1
	Bytes   int64 // charged: the lines without their newlines
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
	case l.Part < 1 || l.Part > l.Parts || l.First < 0 || l.Entries < 1 || l.Bytes < 0 || l.Errors < 0 || l.RequestBytes < 0:
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
