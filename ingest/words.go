package ingest

import (
	"bytes"
	"encoding/binary"
	"unicode"
	"unicode/utf8"

	"github.com/weirlog/weir/shared/contract/entryfield"
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
	word, room := buffer[:0], maxWordBytes // room is less once a letter did not fit
	for i := 0; i < len(text); {
		if c := ascii[text[i]]; c != 0 {
			if i++; len(word) < room {
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
			word, room = buffer[:0], maxWordBytes
		}
		if kind == separator {
			continue
		}
		if lower := lower(r); len(word)+utf8.RuneLen(lower) <= room {
			word = utf8.AppendRune(word, lower)
		} else {
			room = len(word)
		}
		if kind == wholeWord {
			if !each(word) {
				return
			}
			word, room = buffer[:0], maxWordBytes
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
	case unicode.In(r, unspaced...), r == 'ー', r == 'ｰ':
		return wholeWord
	case unicode.IsLetter(r), unicode.IsDigit(r), unicode.IsMark(r):
		return partOfWord
	}
	return separator
}

// A WordFilter is a Bloom filter of the words of a block's messages and
// of the values of its other fields (Burton H. Bloom, "Space/time
// trade-offs in hash coding with allowable errors", 1970) with probes by
// double hashing (Kirsch and Mitzenmacher, "Less hashing, same
// performance", 2006). It has no false negatives, and about one false
// positive in 2,000.
type WordFilter []byte

const (
	bitsPerWord = 16
	probes      = 11 // bitsPerWord * ln 2
)

// A wordSet collects the hashes of words and values, by open addressing.
type wordSet struct {
	slots []uint64 // a power of two of them, at most half full; 0: empty
	count int
	zero  bool // it has the hash 0
}

// add adds the words of an entry's message and the values of its other fields.
func (s *wordSet) add(entry []byte) {
	left := maxValues
	eachMember(entry, func(name, value []byte) bool {
		switch string(decodedString(name)) {
		case entryfield.Timestamp, entryfield.Level, entryfield.Environment:
		case entryfield.Message:
			if value[0] == '"' {
				s.addWords(decodedString(value))
			}
		case entryfield.Error:
			left = s.addError(value, left)
		default:
			left = s.addValues(value, left)
		}
		return false
	})
	if left < 0 {
		s.insert(hashValue(tooMany))
	}
}

// addError is addValues without the frames of an error.
func (s *wordSet) addError(value []byte, left int) int {
	if value[0] != '{' {
		return s.addValues(value, left)
	}
	eachMember(value, func(name, value []byte) bool {
		if string(decodedString(name)) != entryfield.ErrorStackTrace {
			left = s.addValues(value, left)
		}
		return false
	})
	return left
}

func (s *wordSet) addWords(message []byte) {
	eachWord(message, func(word []byte) bool {
		s.insert(hashWord(word))
		return true
	})
}

// Bounds of the values in a filter, by their folded bytes, and by the
// values of one entry. A block with an entry of more may hold any value.
const (
	maxValueBytes = 64
	maxValues     = 64
)

// tooMany says that not all values of an entry are in the filter. It is
// longer than a value there.
var tooMany = bytes.Repeat([]byte{'?'}, maxValueBytes+1)

// addValues adds the scalars of a value, at most left, and returns how
// many more there may be; negative: there were too many.
func (s *wordSet) addValues(value []byte, left int) int {
	for i := 0; i < len(value) && left >= 0; {
		switch value[i] {
		case '{', '}', '[', ']', ',', ':':
			i++
			continue
		}
		end := scalarEnd(value, i)
		if end == len(value) || value[end] != ':' { // it is no name
			if left--; left >= 0 {
				s.addValue(value[i:end])
			}
		}
		i = end
	}
	return left
}

func (s *wordSet) addValue(value []byte) {
	var buffer [2 * maxValueBytes]byte
	if len(value) > 6*maxValueBytes+2 { // too long even if it is all escapes
		return
	}
	if folded := appendText(buffer[:0], value); len(folded) <= maxValueBytes {
		s.insert(hashValue(folded))
	}
}

func (s *wordSet) insert(hash uint64) {
	if hash == 0 {
		s.zero = true
		return
	}
	if s.count*2 >= len(s.slots) {
		s.grow()
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
func (f WordFilter) mayHold(word string) bool { return f.has(hashWord([]byte(word))) }

// mayHoldValue reports whether a folded value can be in the block.
func (f WordFilter) mayHoldValue(folded string) bool {
	return len(folded) > maxValueBytes || f.has(hashValue([]byte(folded))) || f.has(hashValue(tooMany))
}

func (f WordFilter) has(hash uint64) bool {
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
