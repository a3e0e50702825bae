package tenants

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Subject is an entity whose changes are audited. Its
// fields in the audit have neither secrets nor hashes.
type Subject interface {
	Apply(event Event)
	audited() (Target, Fields)
}

// A Target is the entity that a change is about.
type Target struct {
	Kind string // "api_key"
	ID   string
	Name string // at the time; may be empty
}

// A Change is an event as the audit shows it: one entity before and after.
type Change struct {
	Action string // "api_key.revoked"
	At     time.Time
	Target Target
	Before Fields // nil where there was nothing
	After  Fields
}

// Fold applies a stream's events, at least one, to a new subject.
func Fold(history ...Event) Subject {
	subject := history[0].meta().subject
	for _, event := range history {
		subject.Apply(event)
	}
	return subject
}

// Audit applies an event to a subject, nil
// for a new one, and returns the change.
func Audit(subject Subject, event Event) (Subject, Change) {
	meta := event.meta()
	change := Change{Action: meta.action, At: meta.at}
	if subject == nil {
		subject = meta.subject
	} else if target, fields := subject.audited(); target.ID != "" {
		change.Before = fields.nonZero()
	}
	subject.Apply(event)
	if reported, is := event.(ChangeReported); is && len(reported.Before) > 0 { // of what is not kept here
		change.Before = texts(reported.Before).nonZero()
	}
	var after Fields
	change.Target, after = subject.audited()
	change.After = after.nonZero()
	return subject, change
}

// ActorName is the name of a subject as an
// actor; a member's has the e-mail address.
func ActorName(subject Subject) string {
	if subject == nil {
		return ""
	}
	target, fields := subject.audited()
	if email, _ := fields["email"].(string); email != "" {
		return target.Name + " (" + email + ")"
	}
	return target.Name
}

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

// Fields are an entity's state: strings, integers,
// booleans, times and lists of strings. Zero values are
// left out, so that a new field changes no old line.
type Fields map[string]any

// nonZero leaves out zero values and formats times as RFC 3339.
func (f Fields) nonZero() Fields {
	known := Fields{}
	for name, value := range f {
		if value = jsonValue(value); value != nil {
			known[name] = value
		}
	}
	return known
}

// jsonValue is a value as in JSON, nil for the zero value.
func jsonValue(value any) any {
	var zero bool
	switch v := value.(type) {
	case string:
		zero = v == ""
	case bool:
		zero = !v
	case int:
		zero = v == 0
	case []string:
		zero = len(v) == 0
	case time.Time:
		value, zero = v.UTC().Format(time.RFC3339Nano), v.IsZero()
	default:
		panic(fmt.Sprintf("BUG: a field of the audit can't be a %T", value))
	}
	if zero {
		return nil
	}
	return value
}

// JSON is the fields as a JSON object, sorted
// and without white space; "" for nil.
func (f Fields) JSON() string {
	if f == nil {
		return ""
	}
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(f); err != nil {
		panic("BUG: " + err.Error()) // nonZero leaves only what can be encoded
	}
	return strings.TrimSuffix(text.String(), "\n")
}

// ParseFields is the inverse of Fields.JSON.
func ParseFields(text string) (fields Fields, err error) {
	if text == "" {
		return nil, nil
	}
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	err = decoder.Decode(&fields)
	return fields, err
}

// A Difference is a changed field as readable text. "" is none.
type Difference struct {
	Field, Before, After string
}

// Differences lists the fields that a change altered, by name.
func (f Fields) Differences(after Fields) (differences []Difference) {
	names := slices.AppendSeq(slices.Collect(maps.Keys(f)), maps.Keys(after))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if was, is := readable(f[name]), readable(after[name]); was != is {
			differences = append(differences, Difference{name, was, is})
		}
	}
	return differences
}

func readable(value any) string {
	switch v := value.(type) {
	case nil:
		return ""
	case []any:
		words := make([]string, len(v))
		for i, word := range v {
			words[i] = readable(word)
		}
		return strings.Join(words, ", ")
	case []string:
		return strings.Join(v, ", ")
	}
	return fmt.Sprint(value)
}

// An AuditFilter selects lines of an audit. Empty fields match all.
type AuditFilter struct {
	Organization string // or Installation; required
	Actor        string // id
	Action       string
	Target       string    // id
	From, To     time.Time // in [From, To)
}

var actionForm = regexp.MustCompile(`^[a-z_]{1,40}\.[a-z_]{1,40}$`)

// Check returns Invalid for a filter that no line can match, or nil.
func (f AuditFilter) Check() error {
	faults := append(checkID("actor", f.Actor), checkID("target", f.Target)...)
	if f.Action != "" && !actionForm.MatchString(f.Action) {
		faults = append(faults, Fault{"action", fmt.Sprintf("action is %q.", f.Action), "Use an action such as api_key.revoked."})
	}
	if !f.To.IsZero() && !f.To.After(f.From) {
		faults = append(faults, Fault{"to", "The end is not after the beginning.", "Use a later one, or leave it out."})
	}
	return faults.orNil()
}

// checkID returns the fault of an optional id.
func checkID(field, id string) Invalid {
	if id == "" || IsID(id) {
		return nil
	}
	return Invalid{{field, fmt.Sprintf("%s is %q.", field, id), "Use the id of the " + field + ", such as key_0190a1b2."}}
}

// A Reduction adds up the lines reduced by a deletion, in order.
type Reduction struct {
	Lines int64
	sum   string
}

// Add adds a line's hash and what is left of it.
func (r *Reduction) Add(line AuditEvent) {
	r.Lines, r.sum = r.Lines+1, line.hash(r.Hash()+line.Hash)
}

// Hash is a SHA-256 of all added lines.
func (r *Reduction) Hash() string {
	if r.sum == "" {
		return AuditStart
	}
	return r.sum
}

// An ActorKind is a kind of actor.
type ActorKind string

// The kinds of actors.
const (
	MemberActor        ActorKind = "member"
	APIKeyActor        ActorKind = "api_key"
	ServiceTokenActor  ActorKind = "service_token"
	ConfigurationActor ActorKind = "configuration" // of the installation
	SystemActor        ActorKind = "system"        // without an actor, as when a time has come
)

// An Origin is who made a decision, and from where,
// in the metadata of events. Empty parts are unknown.
type Origin struct {
	Actor   string // id of a member, API key or service token, or the name of another actor
	Kind    ActorKind
	Role    Role   // of a member, at the time
	Address string // IP address of the client
	Client  string // its User-Agent
	Request string // id of the request
}

// Members of an event's metadata. They are stored.
const (
	metadataActor   = "actor"
	metadataKind    = "actor_kind"
	metadataRole    = "role"
	metadataAddress = "address"
	metadataClient  = "client"
	metadataRequest = "request"
)

// Metadata is the known part of the origin, as stored.
func (o Origin) Metadata() map[string]string {
	known := map[string]string{}
	for name, value := range map[string]string{
		metadataActor: o.Actor, metadataKind: string(o.Kind), metadataRole: string(o.Role), metadataAddress: o.Address,
		metadataClient: o.Client, metadataRequest: o.Request,
	} {
		if value != "" {
			known[name] = value
		}
	}
	return known
}

// OriginOf reads an origin from an event's metadata. In
// the first events the kind of actor follows from the id.
func OriginOf(metadata map[string]string) Origin {
	origin := Origin{
		Actor: metadata[metadataActor], Kind: ActorKind(metadata[metadataKind]), Role: Role(metadata[metadataRole]),
		Address: metadata[metadataAddress], Client: metadata[metadataClient], Request: metadata[metadataRequest],
	}
	if origin.Kind == "" {
		origin.Kind = KindOf(origin.Actor)
	}
	return origin
}

// KindOf is the kind of an actor by its id.
func KindOf(actor string) ActorKind {
	switch {
	case strings.HasPrefix(actor, "mem_"):
		return MemberActor
	case strings.HasPrefix(actor, "key_"):
		return APIKeyActor
	case strings.HasPrefix(actor, "tok_"):
		return ServiceTokenActor
	case actor == "configuration":
		return ConfigurationActor
	}
	return SystemActor
}
