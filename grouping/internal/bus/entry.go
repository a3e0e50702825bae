package bus

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/sourcemap"
	"github.com/weirlog/weir/shared/contract/entryfield"
)

// entry is what grouping needs of a log entry. A
// member of an unexpected type counts as absent.
type entry struct {
	timestamp, level, message, environment string
	metadata                               metadata
	metadataText                           string            // as it was sent
	debugIDs                               map[string]string // of the metadata, by sourcemap.ScriptName; bounded by maxDebugIDs
	hasError                               bool              // it carries an error payload
	err                                    grouping.Error
}

// mayCarryError is a quick check without false negatives:
// a name is in the text as it is, unless it was escaped.
func mayCarryError(line []byte) bool {
	return bytes.Contains(line, []byte(`"`+entryfield.Error+`":`)) || bytes.Contains(line, []byte(`\u00`))
}

// entry reads a compact JSON object. Names must match exactly,
// unlike in encoding/json; other members are skipped, not decoded.
func (s *scanner) entry(line string, paths []path) (e entry, err error) {
	s.text, s.at, s.err = line, 0, nil
	s.object(func(name string) {
		switch name {
		case entryfield.Timestamp:
			e.timestamp = s.string()
		case entryfield.Level:
			e.level = s.string()
		case entryfield.Message:
			e.message = s.string()
		case entryfield.Environment:
			e.environment = s.string()
		case entryfield.Error:
			e.hasError = s.errorPayload(&e.err)
		case entryfield.Metadata:
			from := s.at
			s.pick(paths, e.metadata[:])
			e.metadataText = s.text[from:s.at]
			e.debugIDs = debugIDsOf(e.metadataText)
		default:
			s.skip()
		}
	})
	if s.err == nil && s.at != len(line) {
		s.fail("text after the entry")
	}
	return e, s.err
}

// errorPayload reads the value of "error", if there is one.
func (s *scanner) errorPayload(e *grouping.Error) bool {
	if s.peek() != '{' {
		s.skip()
		return false
	}
	s.object(func(name string) {
		switch name {
		case entryfield.ErrorType:
			e.Type = s.string()
		case entryfield.ErrorMessage:
			e.Message = s.string()
		case entryfield.ErrorStackTrace:
			e.StackTrace = s.strings()
		default:
			s.skip()
		}
	})
	return true
}

// debugIDsOf reads the debug ids in metadata.
func debugIDsOf(metadata string) (ids map[string]string) {
	if !strings.Contains(metadata, `"debug_ids"`) {
		return nil
	}
	s := scanner{text: metadata}
	s.object(func(name string) {
		if name == "debug_ids" {
			ids = s.debugIDs()
		} else {
			s.skip()
		}
	})
	return ids
}

// maxDebugIDs is how many scripts of an error may have debug ids.
const maxDebugIDs = 100

// debugIDs reads an object of debug ids by the addresses of scripts.
func (s *scanner) debugIDs() map[string]string {
	if s.peek() != '{' {
		s.skip()
		return nil
	}
	ids := map[string]string{} // bounded by maxDebugIDs
	s.object(func(script string) {
		if id := sourcemap.DebugID(s.string()); id != "" && len(ids) < maxDebugIDs {
			ids[sourcemap.ScriptName(script)] = id
		}
	})
	return ids
}

// oneLine is a text without the space around it, such as the end of the line of
// a file; empty where it has several lines.
func oneLine(text string) string {
	if text = strings.TrimSpace(text); strings.ContainsFunc(text, unicode.IsControl) {
		return ""
	}
	return text
}

// scanner reads JSON that was validated before, one text after the other.
// It keeps its first error and stops there.
type scanner struct {
	text   string
	at     int
	err    error
	pieces pieces // of the last array
}

var errSyntax = errors.New("not a JSON object")

func (s *scanner) fail(what string) {
	if s.err == nil {
		s.err = fmt.Errorf("%w: %s at byte %d", errSyntax, what, s.at)
	}
	s.at = len(s.text)
}

// peek returns the next non-blank byte, 0 at the end.
func (s *scanner) peek() byte {
	for ; s.at < len(s.text); s.at++ {
		if c := s.text[s.at]; c != ' ' && c != '\t' && c != '\r' && c != '\n' {
			return c
		}
	}
	return 0
}

func (s *scanner) expect(c byte) {
	if s.peek() != c {
		s.fail(fmt.Sprintf("no %q", c))
		return
	}
	s.at++
}

// object calls member with every name. member must consume the value.
func (s *scanner) object(member func(name string)) {
	s.expect('{')
	if s.peek() == '}' {
		s.at++
		return
	}
	for s.err == nil {
		if s.peek() != '"' {
			s.fail("no name")
			return
		}
		name := s.string()
		s.expect(':')
		member(name)
		if s.peek() != ',' {
			break
		}
		s.at++
	}
	s.expect('}')
}

// strings reads an array of strings, or one string.
// Of an array that is too long, it reads both ends.
func (s *scanner) strings() []string {
	switch s.peek() {
	case '"':
		return []string{s.string()}
	case '[':
	default:
		s.skip()
		return nil
	}
	s.at++
	from := s.at
	s.pieces.reset()
	for s.err == nil && s.peek() != ']' {
		start := s.at
		escaped := s.element()
		s.pieces.add(piece{start, s.at, escaped})
		if s.peek() != ',' {
			break
		}
		s.at++
	}
	s.expect(']')
	if s.err != nil {
		return nil
	}
	all := s.pieces.inOrder()
	if len(all) == 0 {
		return nil
	}
	texts := make([]string, 0, len(all)+1) // one may be cut in two
	for _, e := range all {
		texts = s.appendEnds(texts, e, from+maxHead, s.at-maxTail)
	}
	return texts
}

// element skips an element of an array. It reports
// whether that is a string with an escape.
func (s *scanner) element() (escaped bool) {
	if s.peek() != '"' {
		s.skip()
		return false
	}
	return s.skipString()
}

// string reads a string, copied only if something is
// escaped. Another value is skipped and returned as "".
func (s *scanner) string() string {
	if s.peek() != '"' {
		s.skip()
		return ""
	}
	start := s.at
	escaped := s.skipString()
	if s.err != nil {
		return ""
	}
	if s.at-start <= maxHead {
		return s.unescape(s.text[start+1:s.at-1], escaped)
	}
	return strings.Join(s.appendEnds(nil, piece{start, s.at, escaped}, start+maxHead, s.at-maxTail), "\n")
}

func (s *scanner) unescape(raw string, escaped bool) string {
	if !escaped {
		return raw
	}
	text, ok := unescape(raw)
	if !ok {
		s.fail("bad string")
	}
	return text
}

// skipString skips a string. It reports whether it has escapes.
func (s *scanner) skipString() (escaped bool) {
	i := s.at + 1
	for {
		n := strings.IndexByte(s.text[i:], '"')
		if n < 0 {
			s.fail("string without end")
			return escaped
		}
		quote := i + n
		slash := strings.IndexByte(s.text[i:quote], '\\')
		if slash < 0 {
			s.at = quote + 1
			return escaped
		}
		escaped = true
		for i += slash; i < quote; i++ { // up to the quote, which may be escaped
			if s.text[i] == '\\' {
				i++
			}
		}
		if i == quote {
			s.at = quote + 1
			return escaped
		}
	}
}

// skip skips any value.
func (s *scanner) skip() {
	depth := 0
	for s.err == nil {
		switch s.peek() {
		case 0:
			s.fail("no value")
		case '"':
			s.skipString()
		case '{', '[':
			depth++
			s.at++
			continue
		case '}', ']':
			if depth == 0 {
				s.fail("no value")
				return
			}
			depth--
			s.at++
		case ',', ':':
			if depth == 0 {
				s.fail("no value")
				return
			}
			s.at++
			continue
		default:
			s.skipLiteral()
		}
		if depth == 0 {
			return
		}
	}
}

// skipLiteral skips a number, true, false or null.
func (s *scanner) skipLiteral() {
	if n := strings.IndexAny(s.text[s.at:], ",]} \t\r\n"); n >= 0 {
		s.at += n
		return
	}
	s.at = len(s.text)
}
