package ledger

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"maps"
	"slices"
	"time"

	"github.com/weirlog/weir/shared/contract/calendar"
)

// A Head is the end of an organization's chain.
type Head struct {
	Sequence int64 // of its last link; 0: it has none
	Hash     Hash  // of that link
}

// CheckLinks checks each link of an organization against the one
// before, and the last against the chain's head. Links before the first may be gone.
func CheckLinks(links []Link, head Link) (violations []Violation) {
	broken := func(l Link, what string) {
		violations = append(violations, Violation{Invariant: ChainHolds, Detail: fmt.Sprintf("organization %q, link %d of %s: %s",
			l.Organization, l.Sequence, l.Hour.Format(time.RFC3339), what)})
	}
	for i, link := range links {
		if link.Sealed().Hash != link.Hash {
			broken(link, "its hash is not that of its content")
		}
		if link.Sequence == 1 && link.Previous != (Hash{}) {
			broken(link, "it is the first, and follows another")
		}
		if i > 0 && (link.Sequence != links[i-1].Sequence+1 || link.Previous != links[i-1].Hash || !link.Hour.After(links[i-1].Hour)) {
			broken(link, fmt.Sprintf("it does not follow link %d", links[i-1].Sequence))
		}
	}
	if len(links) > 0 {
		if last := links[len(links)-1]; last.Sequence != head.Sequence || last.Hash != head.Hash ||
			last.Decisions != head.Decisions || !last.Hour.Equal(head.Hour) {
			broken(last, fmt.Sprintf("it is the last, with %d decisions, and the head of the chain is link %d of %s with the hash %x and %d decisions",
				last.Decisions, head.Sequence, head.Hour.Format(time.RFC3339), head.Hash, head.Decisions))
		}
	}
	return violations
}

// A Hash is the SHA-256 of canonical bytes: numbers are eight bytes,
// big-endian, and texts follow their length.
type Hash [sha256.Size]byte

// Each hash begins with the name of its form, which is stored.
const (
	linkForm      = "weir.ledger.link.v1"
	chargesForm   = "weir.ledger.charges.v1"
	decisionsForm = "weir.ledger.decisions.v1"
	decisionForm  = "weir.ledger.decision.v1"
	standingForm  = "weir.ledger.standing.v1"
	statementForm = "weir.ledger.statement.v1"
	rootForm      = "weir.ledger.root.v1"

	checkpointForm = "weir.ledger.checkpoint.v1"
)

// A Link has an organization's charges in an hour of the log, and the
// decisions by the hour's end. Its hash covers the link before, and so
// the whole history. It does not depend on transactions: the same log
// and decisions give the same chain.
type Link struct {
	Organization string
	Sequence     int64 // from 1
	Hour         time.Time
	Charges      int64 // requests
	Bytes        int64
	Charged      Hash  // of the charges
	Decisions    int64 // number by the end of the hour
	Decided      Hash  // of those since the link before
	Previous     Hash
	Hash         Hash
}

// Sealed returns the link with its hash.
func (l Link) Sealed() Link {
	d := newDigest(linkForm)
	d.hash(l.Previous)
	d.text(l.Organization)
	d.number(l.Sequence, l.Hour.Unix(), l.Charges, l.Bytes, l.Decisions)
	d.hash(l.Charged)
	d.hash(l.Decided)
	l.Hash = d.sum()
	return l
}

// A LinkedCharge is a charge as it is hashed.
type LinkedCharge struct {
	Partition    int
	Offset       int64
	Event        string
	Project, Key string
	Bytes        int64
	Entries      int64
}

// A ChargesDigest hashes charges in the order of partitions and offsets.
type ChargesDigest struct {
	digest
	Charges, Bytes int64
}

// NewChargesDigest returns an empty digest.
func NewChargesDigest() *ChargesDigest { return &ChargesDigest{digest: newDigest(chargesForm)} }

// Add adds the next charge.
func (d *ChargesDigest) Add(c LinkedCharge) {
	d.number(int64(c.Partition), c.Offset, c.Bytes, c.Entries)
	d.text(c.Event)
	d.text(c.Project)
	d.text(c.Key)
	d.Charges, d.Bytes = d.Charges+1, d.Bytes+c.Bytes
}

// Sum returns the hash so far.
func (d *ChargesDigest) Sum() Hash { return d.sum() }

// A LinkedDecision is a decision as it is stored.
type LinkedDecision struct {
	Number         int64
	Name           string
	Data, Metadata string
}

// A DecisionsDigest hashes decisions in order.
type DecisionsDigest struct {
	digest
	Through int64 // number of the last
}

// NewDecisionsDigest returns an empty digest of decisions after a number.
func NewDecisionsDigest(behind int64) *DecisionsDigest {
	return &DecisionsDigest{digest: newDigest(decisionsForm), Through: behind}
}

// Add adds the next decision.
func (d *DecisionsDigest) Add(decided LinkedDecision) {
	d.number(decided.Number)
	d.text(decided.Name)
	d.text(decided.Data)
	d.text(decided.Metadata)
	d.Through = decided.Number
}

// Sum returns the hash so far.
func (d *DecisionsDigest) Sum() Hash { return d.sum() }

// A Root hashes the chains of all organizations at the end of an hour.
type Root struct {
	digest
	Organizations int64
}

// NewRoot returns an empty root.
func NewRoot() *Root { return &Root{digest: newDigest(rootForm)} }

// Add adds the head of the next organization's chain, in byte order of their ids.
func (r *Root) Add(organization string, sequence int64, head Hash) {
	r.text(organization)
	r.number(sequence)
	r.hash(head)
	r.Organizations++
}

// AddHash adds the checkpoint or the refusals of the hour, behind all
// chains.
func (r *Root) AddHash(hash Hash) { r.hash(hash) }

// Sum returns the hash so far.
func (r *Root) Sum() Hash { return r.sum() }

// A digest hashes values in canonical form.
type digest struct{ state hash.Hash }

func newDigest(form string) digest {
	d := digest{sha256.New()}
	d.text(form)
	return d
}

func (d digest) number(numbers ...int64) {
	var encoded [8]byte
	for _, n := range numbers {
		binary.BigEndian.PutUint64(encoded[:], uint64(n)) //nolint:gosec // only the bits matter
		d.state.Write(encoded[:])
	}
}

func (d digest) text(text string) {
	d.number(int64(len(text)))
	d.state.Write([]byte(text))
}

func (d digest) hash(h Hash) { d.state.Write(h[:]) }

func (d digest) sum() (sum Hash) {
	d.state.Sum(sum[:0])
	return sum
}

// A Checkpoint is what the books of all organizations were at positions
// of the log and behind a decision. The root of Hour has its hash.
type Checkpoint struct {
	Hour      time.Time     // of the log, sealed with it
	Topic     [16]byte      // id of the log's topic
	Positions map[int]int64 // next offsets, bounded by the log's partitions
	Decision  int64         // position of the last decision in the event store
	Hash      Hash
}

// A CheckpointDigest hashes the content of a checkpoint.
type CheckpointDigest struct{ digest }

// NewCheckpointDigest returns the digest of a checkpoint without content.
func NewCheckpointDigest(c Checkpoint) *CheckpointDigest {
	d := CheckpointDigest{newDigest(checkpointForm)}
	d.time(c.Hour)
	d.text(string(c.Topic[:]))
	d.number(c.Decision, int64(len(c.Positions)))
	for _, partition := range slices.Sorted(maps.Keys(c.Positions)) {
		d.number(int64(partition), c.Positions[partition])
	}
	return &d
}

// Add adds what an organization has of a kind, in byte order of both.
func (d *CheckpointDigest) Add(organization, kind string, content []byte) {
	d.text(organization)
	d.text(kind)
	d.text(string(content))
}

// Sum returns the hash so far.
func (d *CheckpointDigest) Sum() Hash { return d.sum() }

// A Range is the stretch of a partition that one transaction applied,
// or several that are joined.
type Range struct {
	Partition    int
	First, Next  int64 // half-open
	Records      int
	Charged      int       // requests
	Bytes        int64     // of all records
	Checksum     *int64    // sum over all records; nil: unknown
	ChargedBytes int64     // of whole requests, wherever their other parts are
	From, To     time.Time // earliest and latest acceptance, both inclusive
	BookedFrom   time.Time // when the first transaction booked
	Booked       time.Time // when the last did
}

// RangesOf returns the ranges that parts of requests come from, booked at
// one instant. Parts and requests are in the order of their records.
func RangesOf(parts, requests []Charge, booked time.Time) (ranges []Range) {
	at := map[int]int{} // index in ranges by partition
	for _, part := range parts {
		n, ok := at[part.Cause.Partition]
		if !ok {
			n = len(ranges)
			at[part.Cause.Partition], ranges = n, append(ranges, newRange(part.Cause, booked))
		}
		ranges[n].add(part)
	}
	for _, request := range requests {
		ranges[at[request.Cause.Partition]].charge(request)
	}
	return ranges
}

// ExtendToLate extends ranges to the periods in which their late charges
// count, as events say.
func ExtendToLate(ranges []Range, events []Event) {
	for _, event := range events {
		for i := range ranges {
			if event.Kind == BooksAdjusted && ranges[i].Partition == event.Cause.Partition {
				ranges[i].extend(event.Book.Period.Start)
			}
		}
	}
}

func newRange(cause Cause, booked time.Time) Range {
	return Range{
		Partition: cause.Partition, First: cause.Offset, Next: cause.Offset, From: cause.At, To: cause.At, BookedFrom: booked, Booked: booked, Checksum: new(int64),
	}
}

// add adds the next record. Records come in offset order.
func (r *Range) add(charge Charge) {
	r.Next = charge.Cause.Offset + 1
	r.Records++
	r.Bytes += charge.Bytes
	*r.Checksum += int64(charge.Checksum) //nolint:gosec // it wraps around
	r.extend(charge.Cause.At)
}

// charge adds a request that a record of the range completes.
func (r *Range) charge(request Charge) {
	r.Charged++
	r.ChargedBytes += request.Bytes
}

// extend extends the range's time to an instant.
func (r *Range) extend(at time.Time) {
	if at.Before(r.From) {
		r.From = at
	}
	if at.After(r.To) {
		r.To = at
	}
}

// Join adds another range of the partition.
func (r *Range) Join(other Range) {
	r.First, r.Next = min(r.First, other.First), max(r.Next, other.Next)
	r.Records, r.Charged = r.Records+other.Records, r.Charged+other.Charged
	r.Bytes, r.ChargedBytes = r.Bytes+other.Bytes, r.ChargedBytes+other.ChargedBytes
	*r.Checksum += *other.Checksum
	r.BookedFrom, r.Booked = calendar.Earlier(r.BookedFrom, other.BookedFrom), calendar.Later(r.Booked, other.Booked)
	r.extend(other.From)
	r.extend(other.To)
}

// JoinRanges joins ranges with others, partition by partition.
func JoinRanges(ranges, others []Range) []Range {
	for _, other := range others {
		at := slices.IndexFunc(ranges, func(r Range) bool { return r.Partition == other.Partition })
		if at < 0 {
			ranges = append(ranges, other)
			continue
		}
		ranges[at].Join(other)
	}
	return ranges
}

// The invariants of books.
const (
	SumIsZero          = "the balances of a book sum to zero"
	BalanceIsTransfers = "a book's balances are the sum of its transfers"
	UsageIsCharges     = "usage per project and key is what was charged"
	HoursAreDays       = "usage by hour is usage by day"
	BudgetIsUsage      = "what a budget has used is the usage of its project or key"
	RangeIsTransfers   = "what a range charged is the sum of its transfers"
	RangesFollow       = "the ranges of a partition leave out nothing but parked records"
	StatementIsBook    = "a statement is what its book came to"
	LedgerIsLog        = "the ledger's bytes are the log's bytes"
	StatementsFollow   = "each statement follows from the one before"
	DecisionsFollow    = "each decision follows from the one before"
	StandingIsDecided  = "an organization is what its decisions made of it"
	TermsAreRecorded   = "the terms are as a starting process recorded them"
	GrantIsTransfers   = "what became of a grant is the sum of its transfers"
	GrantIsDecided     = "a grant is as it was decided"
	RefusalsAreKept    = "refusals are as they came"
	TransfersAreWhole  = "each transfer is one that its cause makes"
	LinesAreTransfers  = "the lines of a period are the sum of its transfers"
	BooksArePeriods    = "each book is of a period of its organization"
	ChainHolds         = "each link of a chain follows from the one before"
	ChainIsCharges     = "a chain has what was charged and decided"
	RootIsChains       = "the root of an hour is that of all chains"
	CheckpointIsSealed = "a checkpoint is what the root of its hour has"
)

// Invariants returns all of them.
func Invariants() []string {
	return []string{SumIsZero, BalanceIsTransfers, UsageIsCharges, HoursAreDays, BudgetIsUsage, RangeIsTransfers, RangesFollow, StatementIsBook, LedgerIsLog,
		GrantIsTransfers, StatementsFollow, DecisionsFollow, StandingIsDecided, TermsAreRecorded, GrantIsDecided, RefusalsAreKept, TransfersAreWhole,
		LinesAreTransfers, BooksArePeriods, ChainHolds, ChainIsCharges, RootIsChains, CheckpointIsSealed}
}

// A Violation is a broken invariant. There should never be one.
type Violation struct {
	Invariant string
	Detail    string
}
