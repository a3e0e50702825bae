package ingest

import (
	"unicode"
	"unicode/utf8"
)

// maxWordBytes is how much of a word counts.
const maxWordBytes = 64

// unspaced are the scripts without spaces between words, where
// each character counts as a word.
var unspaced = []*unicode.RangeTable{
	unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar,
}

// eachWord calls each with the words of a text, in lower case, until
// it returns false. A word is a longest run of letters, digits and
// marks. It is valid until each returns.
func eachWord(text []byte, each func(word []byte) bool) {
	var buffer [maxWordBytes]byte
	word := buffer[:0]
	for i := 0; i < len(text); {
		if c := ascii[text[i]]; c != 0 {
			if i++; len(word) < maxWordBytes {
				word = append(word, c)
			}
			continue
		}
		r, size := rune(text[i]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRune(text[i:])
		}
		i += size
		kind := kindOf(r)
		if kind != partOfWord && len(word) > 0 {
			if !each(word) {
				return
			}
			word = buffer[:0]
		}
		if kind == separator {
			continue
		}
		if lower := unicode.ToLower(r); len(word)+utf8.RuneLen(lower) <= maxWordBytes {
			word = utf8.AppendRune(word, lower)
		}
		if kind == wholeWord {
			if !each(word) {
				return
			}
			word = buffer[:0]
		}
	}
	if len(word) > 0 {
		each(word)
	}
}

// ascii has the letters and digits of ASCII in lower case, 0 for all other bytes.
var ascii = func() (lower [256]byte) {
	for c := range byte(utf8.RuneSelf) {
		if kindOf(rune(c)) == partOfWord {
			lower[c] = byte(unicode.ToLower(rune(c)))
		}
	}
	return lower
}()

type kind uint8

const (
	separator kind = iota
	partOfWord
	wholeWord
)

func kindOf(r rune) kind {
	switch {
	case r < utf8.RuneSelf:
		if 'a' <= r|0x20 && r|0x20 <= 'z' || '0' <= r && r <= '9' {
			return partOfWord
		}
		return separator
	case unicode.In(r, unspaced...):
		return wholeWord
	case unicode.IsLetter(r), unicode.IsDigit(r), unicode.IsMark(r):
		return partOfWord
	}
	return separator
}

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

// A wordSet collects the hashes of words, by open addressing.
type wordSet struct {
	slots []uint64 // a power of two of them, at most half full; 0: empty
	count int
	zero  bool // it has the hash 0
}

func (s *wordSet) add(message []byte) {
	eachWord(message, func(word []byte) bool {
		if s.count*2 >= len(s.slots) {
			s.grow()
		}
		s.insert(hashWord(word))
		return true
	})
}

func (s *wordSet) insert(hash uint64) {
	if hash == 0 {
		s.zero = true
		return
	}
	for at := hash; ; at++ {
		slot := &s.slots[at&uint64(len(s.slots)-1)]
		if *slot == hash {
			return
		}
		if *slot == 0 {
			*slot = hash
			s.count++
			return
		}
	}
}

func (s *wordSet) grow() {
	old := s.slots
	s.slots, s.count = make([]uint64, max(minSlots, 2*len(old))), 0
	for _, hash := range old {
		if hash != 0 {
			s.insert(hash)
		}
	}
}

const minSlots = 256

func (s *wordSet) filter() WordFilter {
	filter := make(WordFilter, max(8, (s.count*bitsPerWord+7)/8))
	for _, hash := range s.slots {
		if hash != 0 {
			filter.set(hash)
		}
	}
	if s.zero {
		filter.set(0)
	}
	return filter
}

// mayHold reports whether a word, in lower case, can be in the block. An
// empty filter holds everything.
func (f WordFilter) mayHold(word string) bool {
	hash := hashWord([]byte(word))
	return len(f) == 0 || f.probe(hash, func(at uint64) bool { return f[at/8]&(1<<(at%8)) != 0 })
}

func (f WordFilter) set(hash uint64) {
	f.probe(hash, func(at uint64) bool {
		f[at/8] |= 1 << (at % 8)
		return true
	})
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
