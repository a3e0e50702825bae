package ledger

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"time"
)

// A Hash is SHA-256 of something in its canonical form: numbers are eight
// bytes, big-endian, and texts follow their length.
type Hash [sha256.Size]byte

// What is hashed begins with the name of its form, which is data.
const (
	formOfLink      = "weir.ledger.link.v1"
	formOfCharges   = "weir.ledger.charges.v1"
	formOfDecisions = "weir.ledger.decisions.v1"
	formOfRoot      = "weir.ledger.root.v1"
)

// A Link is what was charged to an organization in an hour of the log, and
// decided about it by the hour's end. Its hash covers the one before, so it
// stands for the whole history. It does not depend on how the log was divided
// into transactions: the same log and decisions make the same chain.
type Link struct {
	Organization string
	Sequence     int64 // from 1
	Hour         time.Time
	Charges      int64 // requests
	Bytes        int64
	Charged      Hash  // of the charges
	Decisions    int64 // how many there were by the end of the hour
	Decided      Hash  // of those that the link before does not have
	Previous     Hash
	Hash         Hash
}

// Sealed is the link with its hash.
func (l Link) Sealed() Link {
	d := newDigest(formOfLink)
	d.hash(l.Previous)
	d.text(l.Organization)
	d.number(l.Sequence, l.Hour.Unix(), l.Charges, l.Bytes, l.Decisions)
	d.hash(l.Charged)
	d.hash(l.Decided)
	l.Hash = d.sum()
	return l
}

// A LinkedCharge is a charge as a link has it.
type LinkedCharge struct {
	Partition    int
	Offset       int64
	Event        string
	Project, Key string
	Bytes        int64
	Entries      int64
}

// A ChargesDigest is made of charges in the order of their partitions and offsets.
type ChargesDigest struct {
	digest
	Charges, Bytes int64
}

// NewChargesDigest has no charges yet.
func NewChargesDigest() *ChargesDigest { return &ChargesDigest{digest: newDigest(formOfCharges)} }

// Add takes the next charge.
func (d *ChargesDigest) Add(c LinkedCharge) {
	d.number(int64(c.Partition), c.Offset, c.Bytes, c.Entries)
	d.text(c.Event)
	d.text(c.Project)
	d.text(c.Key)
	d.Charges, d.Bytes = d.Charges+1, d.Bytes+c.Bytes
}

// Sum is the hash of the charges so far.
func (d *ChargesDigest) Sum() Hash { return d.sum() }

// A LinkedDecision is a decision as it is stored.
type LinkedDecision struct {
	Number         int64
	Name           string
	Data, Metadata string
}

// A DecisionsDigest is made of decisions in their order.
type DecisionsDigest struct {
	digest
	Through int64 // the number of the last
}

// NewDecisionsDigest has none of the decisions behind a number.
func NewDecisionsDigest(behind int64) *DecisionsDigest {
	return &DecisionsDigest{digest: newDigest(formOfDecisions), Through: behind}
}

// Add takes the next decision.
func (d *DecisionsDigest) Add(decided LinkedDecision) {
	d.number(decided.Number)
	d.text(decided.Name)
	d.text(decided.Data)
	d.text(decided.Metadata)
	d.Through = decided.Number
}

// Sum is the hash of the decisions so far.
func (d *DecisionsDigest) Sum() Hash { return d.sum() }

// A Root stands for the chains of all organizations as they were
// at the end of an hour.
type Root struct {
	digest
	Organizations int64
}

// NewRoot has no organizations yet.
func NewRoot() *Root { return &Root{digest: newDigest(formOfRoot)} }

// Add takes the head of the next organization's chain, in the
// order of the bytes of their ids.
func (r *Root) Add(organization string, sequence int64, head Hash) {
	r.text(organization)
	r.number(sequence)
	r.hash(head)
	r.Organizations++
}

// Sum is the hash of the heads so far.
func (r *Root) Sum() Hash { return r.sum() }

// A digest takes values in their canonical form.
type digest struct{ state hash.Hash }

func newDigest(form string) digest {
	d := digest{sha256.New()}
	d.text(form)
	return d
}

func (d digest) number(numbers ...int64) {
	var encoded [8]byte
	for _, n := range numbers {
		binary.BigEndian.PutUint64(encoded[:], uint64(n)) //nolint:gosec // the bits are what counts
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
