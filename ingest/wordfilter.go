package ingest

// A WordFilter is a Bloom filter of the words of a block (Burton H.
// Bloom, "Space/time trade-offs in hash coding with allowable
// errors", 1970) with probes by double hashing (Kirsch and
// Mitzenmacher, "Less hashing, same performance", 2006). It has no
// false negatives, and about one false positive in 120.
type WordFilter []byte

const (
	bitsPerWord = 10
	probes      = 7 // bitsPerWord * ln 2
)

// wordSet collects the hashes of words.
type wordSet map[uint64]struct{}

func (s wordSet) add(message []byte) {
	eachWord(message, func(word []byte) bool {
		s[hashWord(word)] = struct{}{}
		return true
	})
}

func (s wordSet) filter() WordFilter {
	size := max(8, (len(s)*bitsPerWord+7)/8)
	filter := make(WordFilter, size)
	for hash := range s {
		filter.probe(hash, func(at uint64) bool {
			filter[at/8] |= 1 << (at % 8)
			return true
		})
	}
	return filter
}

// MayHold reports whether all words can be in the block. An
// empty filter holds everything.
func (f WordFilter) MayHold(words Words) bool {
	for _, word := range words {
		if len(f) > 0 && !f.has(hashWord([]byte(word))) {
			return false
		}
	}
	return true
}

func (f WordFilter) has(hash uint64) bool {
	return f.probe(hash, func(at uint64) bool { return f[at/8]&(1<<(at%8)) != 0 })
}

// probe calls each with the bits of hash until it returns false.
func (f WordFilter) probe(hash uint64, each func(at uint64) bool) bool {
	size := uint64(len(f)) * 8
	step := hash>>32 | 1
	for i := range uint64(probes) {
		if !each((hash + i*step) % size) {
			return false
		}
	}
	return true
}

// hashWord is stored in blocks, so it never changes: FNV-1a with 64
// bits (Fowler, Noll, Vo), then the finalizer of MurmurHash3, because
// FNV's high bits are weak on short words.
func hashWord(word []byte) uint64 {
	hash := uint64(14695981039346656037)
	for _, c := range word {
		hash = (hash ^ uint64(c)) * 1099511628211
	}
	hash = (hash ^ hash>>33) * 0xff51afd7ed558ccd
	hash = (hash ^ hash>>33) * 0xc4ceb9fe1a85ec53
	return (hash ^ hash>>33)
}
