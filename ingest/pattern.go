package ingest

import (
	"maps"
	"slices"
	"strings"

	"github.com/weirlog/weir/shared/contract/entryfield"
)

// FieldPattern is the name of the field that is the pattern of an entry's
// message. Its values have a Pattern.
const FieldPattern = entryfield.Message + ".pattern"

const (
	MaxPatterns = 500 // that are counted at once
	maxExample  = 256 // bytes of a message
	maxPhrases  = 8   // of a query that finds a pattern
)

// A Pattern is what entries have in common whose messages differ in their
// variable parts only: see mask.go and join.go.
type Pattern struct {
	Levels  LevelCounts
	First   Place   // of the first entry
	Last    Instant // of the last
	Example string  // how the message of the first begins
	New     bool    // by MarkNew
	mask    string
}

// message is the decoded message of an entry.
func (s *Stored) message() (message []byte) {
	jsonPath(entryfield.Message).find(s.Text, func(value []byte) bool {
		if value[0] == '"' {
			message = decodedString(value)
		}
		return true
	})
	return message
}

func (p *Pattern) add(entry *Stored, message []byte) {
	p.Levels[entry.Level]++
	if p.Levels.Sum() == 1 || entry.Place.Compare(p.First) < 0 {
		p.First, p.Example = entry.Place, exampleOf(message)
	}
	if p.Levels.Sum() == 1 || entry.Time.Compare(p.Last) > 0 {
		p.Last = entry.Time
	}
}

func exampleOf(message []byte) string {
	if len(message) <= maxExample {
		return string(message)
	}
	return strings.ToValidUTF8(string(message[:maxExample]), "") + cutOff
}

// merge adds another pattern, which is not used any more.
func (p *Pattern) merge(other *Pattern) {
	if p == nil {
		return
	}
	p.Levels.add(other.Levels)
	if other.First.Compare(p.First) < 0 {
		p.First, p.Example = other.First, other.Example
	}
	if other.Last.Compare(p.Last) > 0 {
		p.Last = other.Last
	}
}

// patternText is a mask as people read it.
func patternText(mask string) string {
	var text strings.Builder
	for _, piece := range piecesOf(mask) {
		text.WriteString(piece.Text)
	}
	return text.String()
}

// Pieces is the pattern with its variables marked.
func (p *Pattern) Pieces() []Piece { return piecesOf(p.mask) }

func piecesOf(mask string) (pieces []Piece) {
	rest := 0
	for i := range len(mask) {
		if mask[i] >= variables {
			continue
		}
		if rest < i {
			pieces = append(pieces, Piece{mask[rest:i], false})
		}
		pieces, rest = append(pieces, Piece{variableNames[mask[i]], true}), i+1
	}
	if rest < len(mask) {
		pieces = append(pieces, Piece{mask[rest:], false})
	}
	return pieces
}

// Query returns a query that finds all entries of the pattern, and few others:
// its words between variables, as phrases; empty: it has none.
func (p *Pattern) Query() string {
	var phrases []string
	for part := range strings.FieldsFuncSeq(p.mask, func(r rune) bool { return r < variables }) {
		var words []string
		eachWord([]byte(part), func(word []byte) bool {
			words = append(words, string(word))
			return len(words) < MaxQueryTerms
		})
		if len(words) > 0 && len(phrases) < maxPhrases {
			phrases = append(phrases, `"`+strings.Join(words, " ")+`"`)
		}
	}
	return strings.Join(phrases, " ")
}

// MarkNew marks the patterns of a count that an earlier time has not, and joins what
// both times together show to be one pattern.
func MarkNew(counted, before *FieldCounts) {
	var masks []string
	known := map[string]bool{} // bounded by MaxPatterns
	t := tally{values: map[string]*tracked{}, patterns: true}
	for _, value := range before.Values {
		masks = append(masks, value.Pattern.mask)
	}
	for _, value := range counted.Values {
		masks = append(masks, value.Pattern.mask)
		t.values[value.Pattern.mask] = &tracked{ValueCount: value}
	}
	into := joined(masks)
	for _, value := range before.Values {
		known[into[value.Pattern.mask]] = true
	}
	t.rename(into)
	counted.Values = t.top(len(t.values))
	for i := range counted.Values {
		pattern := counted.Values[i].Pattern
		pattern.New = !known[pattern.mask]
	}
}

// join has the values that are masks of one pattern count as one.
func (t *tally) join() { t.rename(joined(slices.Collect(maps.Keys(t.values)))) }

// rename counts each value as another.
func (t *tally) rename(into map[string]string) {
	before := t.values
	t.values = make(map[string]*tracked, len(before))
	for mask, v := range before {
		v.Value, v.Pattern.mask = into[mask], into[mask]
		t.take(v.Value, v)
	}
}
