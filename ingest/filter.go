package ingest

import (
	"encoding/binary"
	"slices"
)

// A WordFilter is a Bloom filter of the words of a block's messages and
// of the values of its other fields (Burton H. Bloom, "Space/time
// trade-offs in hash coding with allowable errors", 1970), with probes by
// double hashing (Kirsch and Mitzenmacher, "Less hashing, same
// performance", 2006). All probes of a hash lie in one line, so that a
// search reads that much of a large filter (Putze, Sanders and Singler,
// "Cache-, hash- and space-efficient Bloom filters", 2007). It has no false
// negatives, and about one false positive in 1,300.
type WordFilter []byte

const (
	bitsPerWord = 16
	probes      = 11 // bitsPerWord * ln 2
)

// FilterLine is the size of a line in bytes; a filter has a whole number
// of lines, or is a shorter one.
const FilterLine = 128

func newFilter(words int) WordFilter {
	size := max(8, (words*bitsPerWord+7)/8)
	if size > FilterLine {
		size = (size + FilterLine - 1) / FilterLine * FilterLine
	}
	return make(WordFilter, size)
}

// line returns the line of a hash: the upper half of its bits as a part of all lines.
func (f WordFilter) line(hash uint64) WordFilter {
	if len(f) <= FilterLine {
		return f
	}
	lines := uint64(len(f) / FilterLine)
	return f[hash>>32*lines>>32*FilterLine:][:FilterLine]
}

func (f WordFilter) set(hash uint64) {
	line := f.line(hash)
	line.probe(hash, func(at uint64) bool {
		line[at/8] |= 1 << (at % 8)
		return true
	})
}

// has reports whether a line has a hash.
func (f WordFilter) has(hash uint64) bool {
	return f.probe(hash, func(at uint64) bool { return f[at/8]&(1<<(at%8)) != 0 })
}

// probe calls each with the bits of hash in a line until it returns false.
func (f WordFilter) probe(hash uint64, each func(at uint64) bool) bool {
	size, step := uint64(len(f))*8, hash>>16|1
	for i := range uint64(probes) {
		if !each((hash + i*step) % size) {
			return false
		}
	}
	return true
}

// Words is what a search knows of the words and values of a block. The zero
// value may hold everything.
type Words struct {
	Filter WordFilter // whole, or the lines of some hashes, one after the other
	Of     []uint64   // these hashes; nil: the filter is whole
	Lacks  bool       // values of an entry with very many
}

// mayHold reports whether a word, in lower case, can be in the block.
func (w Words) mayHold(word string) bool { return w.has(hashWord([]byte(word))) }

// mayHoldValue reports whether a folded value can be in the block.
func (w Words) mayHoldValue(folded string) bool {
	return w.Lacks || len(folded) > maxValueBytes || w.has(hashValue([]byte(folded)))
}

func (w Words) has(hash uint64) bool {
	switch {
	case len(w.Filter) == 0:
		return true
	case w.Of == nil:
		return w.Filter.line(hash).has(hash)
	}
	i, size := slices.Index(w.Of, hash), len(w.Filter)/len(w.Of)
	return i < 0 || w.Filter[i*size:][:size].has(hash)
}

// WordHashes returns the hashes by which filters decide for the query,
// sorted; none where they can't.
func (q Query) WordHashes() []uint64 {
	hashes := hashesOf(q.root)
	slices.Sort(hashes)
	return slices.Compact(hashes)
}

func hashesOf(c condition) (hashes []uint64) {
	switch c := c.(type) {
	case phrase:
		for _, word := range c.longest() {
			hashes = append(hashes, hashWord([]byte(word)))
		}
	case field:
		if c.value != "" && len(c.value) <= maxValueBytes && !c.isUnindexed() {
			hashes = []uint64{hashValue([]byte(c.value))}
		}
	case all:
		for _, part := range c {
			hashes = append(hashes, hashesOf(part)...)
		}
	case either:
		for _, part := range c {
			of := hashesOf(part)
			if _, level := part.(levels); len(of) == 0 && !level {
				return nil // any block may match
			}
			hashes = append(hashes, of...)
		}
	}
	return hashes
}

// longest are the two longest words of a phrase that are whole: most blocks have its
// short ones, and each is a look at each filter.
func (p phrase) longest() (words []string) {
	for i := range p {
		if p[i].whole() {
			words = append(words, p[i].text)
		}
	}
	slices.SortStableFunc(words, func(a, b string) int { return len(b) - len(a) })
	return words[:min(len(words), 2)]
}

// hashWord is stored in blocks, so it never changes: FNV-1a with 64
// bits (Fowler, Noll, Vo), then the finalizer of MurmurHash3, because
// FNV's high bits are weak on short words.
func hashWord(word []byte) uint64 {
	hash := uint64(14695981039346656037)
	for _, c := range word {
		hash = (hash ^ uint64(c)) * 1099511628211
	}
	return finalized(hash)
}

func finalized(hash uint64) uint64 {
	hash = (hash ^ hash>>33) * 0xff51afd7ed558ccd
	hash = (hash ^ hash>>33) * 0xc4ceb9fe1a85ec53
	return (hash ^ hash>>33)
}

// hashValue is stored, too. It takes eight bytes at once: values are
// longer than words, and there are more of them.
func hashValue(folded []byte) uint64 {
	hash := uint64(len(folded))
	for ; len(folded) >= 8; folded = folded[8:] {
		hash = finalized(hash ^ binary.LittleEndian.Uint64(folded))
	}
	var rest [8]byte
	copy(rest[:], folded)
	return finalized(hash ^ binary.LittleEndian.Uint64(rest[:]) ^ 0x9e3779b97f4a7c15)
}
