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
	eachWordIn(new([maxWordBytes]byte), text, each)
}

// eachWordIn is eachWord with memory for a word.
func eachWordIn(buffer *[maxWordBytes]byte, text []byte, each func(word []byte) bool) {
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

// A wordSet collects the hashes of words and values, by open addressing.
type wordSet struct {
	slots []uint64 // a power of two of them, at most half full; 0: empty
	count int
	zero  bool // it has the hash 0
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
	filter := newFilter(s.count)
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
