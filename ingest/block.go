package ingest

import (
	"bytes"
	"cmp"
	"slices"
	"time"
)

// MaxBlockBytes is the text of a block: large enough to compress well,
// small enough to read for one entry.
const MaxBlockBytes = 1 << 20

// A Place is the order of entries in a project: by event time, then by identity.
type Place struct {
	Time  Instant
	Batch [16]byte // of the batch's UUID
	Index int      // in the batch
}

// Compare orders places: negative when p is before q.
func (p Place) Compare(q Place) int {
	return cmp.Or(p.Time.Compare(q.Time), bytes.Compare(p.Batch[:], q.Batch[:]), cmp.Compare(p.Index, q.Index))
}

// A Stored is one entry as it is stored.
type Stored struct {
	Place
	ReceivedAt  time.Time
	Level       Severity
	Environment string // of the entry, else of its key
	Text        []byte // compact JSON, as it was accepted
}

// A Header is the summary of a block by which a search skips blocks.
type Header struct {
	Min, Max     Instant // event times of its first and last entry
	Levels       SeveritySet
	Environments EnvironmentSet
	Words        WordFilter
	Entries      int
	Bytes        int // of text
}

// A Block is some entries of one project in the order of their places.
type Block struct {
	Header
	List []Stored
}

// A Builder makes blocks of entries that come in any order.
type Builder struct {
	list         []Stored
	bytes        int
	levels       SeveritySet
	environments EnvironmentSet
	words        wordSet
}

// Add takes an entry; message is its message, unescaped. The Builder
// keeps entry.Text, which must not change.
func (b *Builder) Add(entry Stored, message []byte) {
	if b.words == nil {
		b.words = wordSet{}
	}
	b.list = append(b.list, entry)
	b.bytes += len(entry.Text)
	b.levels = b.levels.With(entry.Level)
	if n := len(b.list); n == 1 || b.list[n-2].Environment != entry.Environment {
		b.environments = b.environments.With(entry.Environment)
	}
	b.words.add(message)
}

// Full reports whether to build the block before the next Add.
func (b *Builder) Full() bool { return b.bytes >= MaxBlockBytes }

// Bytes returns the text added since the last block.
func (b *Builder) Bytes() int { return b.bytes }

// Len returns the number of entries added since the last block.
func (b *Builder) Len() int { return len(b.list) }

// Build returns a block of the added entries, at least one, and starts the next.
func (b *Builder) Build() Block {
	slices.SortFunc(b.list, func(x, y Stored) int { return x.Compare(y.Place) })
	header := Header{
		Min: b.list[0].Time, Max: b.list[len(b.list)-1].Time,
		Levels: b.levels, Environments: b.environments, Words: b.words.filter(), Entries: len(b.list), Bytes: b.bytes,
	}
	block := Block{Header: header, List: b.list}
	*b = Builder{}
	return block
}
