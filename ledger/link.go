package ledger

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"time"
)

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
