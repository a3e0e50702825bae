package shippers

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/klauspost/compress/s2"

	"github.com/weirlog/weir/ingest"
	"github.com/weirlog/weir/ingest/internal/otlp"
)

// levelLabels are what levels are called. The first that names one counts.
var levelLabels = []string{"level", "severity", "detected_level"}

// environmentLabels are what environments are called, the same.
var environmentLabels = []string{"env", "environment"}

// A pair is a label, or a member of structured metadata.
type pair struct{ name, value string }

// pairs are at most maxAttributes.
type pairs []pair

func (p *pairs) add(name, value string) error {
	if len(*p) == maxAttributes {
		return fmt.Errorf("it has more than %d labels", maxAttributes)
	}
	*p = append(*p, pair{name, value})
	return nil
}

// takeLevel removes the level and returns it; "": there is none.
func (p *pairs) takeLevel() string {
	for _, name := range levelLabels {
		i := slices.IndexFunc(*p, func(of pair) bool { return of.name == name })
		if i < 0 {
			continue
		}
		level := (*p)[i].value
		if _, known := ingest.LevelNamed([]byte(level)); known {
			*p = slices.Delete(*p, i, i+1)
			return level
		}
	}
	return ""
}

// A stream is what the lines of a stream have in common.
type stream struct {
	request
	level  string // "": its lines say it
	labels int
}

// start begins the lines of a stream.
func (s *stream) start(labels pairs) error {
	s.level = labels.takeLevel()
	for _, name := range environmentLabels {
		if i := slices.IndexFunc(labels, func(of pair) bool { return of.name == name }); i >= 0 {
			labels[i].name = environment
			break
		}
	}
	for _, l := range labels {
		if err := s.label(l.name, stringOf([]byte(l.value))); err != nil {
			return err
		}
	}
	s.labels = s.attributes
	return nil
}

// line writes a line. A time that OTLP can't say stays as metadata.
func (s *stream) line(at ingest.Instant, written string, line []byte, metadata pairs) error {
	s.attributes = s.labels
	if !s.time(at) {
		if err := metadata.add("timestamp", written); err != nil {
			return err
		}
	}
	level := metadata.takeLevel()
	if level == "" {
		level = s.level
	}
	s.record = appendMessage(s.record, severityText, []byte(level))
	s.record = appendMessage(s.record, bodyField, stringOf(line))
	for _, m := range metadata {
		if err := s.attribute(m.name, stringOf([]byte(m.value))); err != nil {
			return err
		}
	}
	return s.endRecord()
}

// UnpackedLoki returns the size of a push request in protobuf when it is
// decompressed; 0: it is no Snappy.
func UnpackedLoki(body []byte) int64 {
	size, err := s2.DecodedLen(body)
	if err != nil {
		return 0
	}
	return int64(size)
}

// Loki rewrites a push request of Loki with at most so many lines:
// protobuf, compressed by Snappy.
func Loki(body []byte, most int) ([]byte, error) {
	plain, err := s2.Decode(nil, body)
	if err != nil {
		return nil, fmt.Errorf("it is not compressed by Snappy: %w", err)
	}
	s := &stream{request: request{most: most}}
	err = otlp.Repeated(plain, 1, func(text []byte) error {
		labels, err := labelsOf(text)
		if err != nil {
			return err
		}
		if err := s.start(labels); err != nil {
			return err
		}
		if err := otlp.Repeated(text, 2, s.entry); err != nil {
			return err
		}
		s.endResource()
		return nil
	})
	return s.out, err
}

// labelsOf reads the labels of a stream: a selector such as {app="cart", env="prod"}.
func labelsOf(stream []byte) (labels pairs, err error) {
	err = otlp.Repeated(stream, 1, func(text []byte) error {
		rest := strings.TrimSpace(string(text))
		if !strings.HasPrefix(rest, "{") || !strings.HasSuffix(rest, "}") {
			return fmt.Errorf("the labels %.100q are not in braces", text)
		}
		for rest = strings.TrimSpace(rest[1 : len(rest)-1]); rest != ""; rest = strings.TrimLeft(rest, ", ") {
			name, after, _ := strings.Cut(rest, "=")
			after = strings.TrimLeft(after, " ")
			quoted, err := strconv.QuotedPrefix(after)
			if err != nil {
				return fmt.Errorf("the labels %.100q can't be read", text)
			}
			value, err := strconv.Unquote(quoted)
			if err != nil {
				return fmt.Errorf("the labels %.100q can't be read", text)
			}
			if err := labels.add(strings.TrimSpace(name), value); err != nil {
				return err
			}
			rest = after[len(quoted):]
		}
		return nil
	})
	return labels, err
}

func (s *stream) entry(text []byte) error {
	var at ingest.Instant
	var line []byte
	var metadata pairs
	m := otlp.Read(text)
	for m.Next() {
		var err error
		switch m.Number {
		case 1:
			at, err = timestampOf(m.Bytes)
		case 2:
			line = m.Bytes
		case 3:
			err = metadata.read(m.Bytes)
		}
		if err != nil {
			return err
		}
	}
	if m.Err() != nil {
		return m.Err()
	}
	return s.line(at, strconv.FormatInt(at.Seconds, 10), line, metadata)
}

// timestampOf reads a Timestamp.
func timestampOf(text []byte) (at ingest.Instant, err error) {
	m := otlp.Read(text)
	for m.Next() {
		switch m.Number {
		case 1:
			at.Seconds = int64(m.Value) //nolint:gosec // two's complement by the format
		case 2:
			at.Nanos = uint32(min(m.Value, 999_999_999)) //nolint:gosec // bounded
		}
	}
	return at, m.Err()
}

// read adds a LabelPair.
func (p *pairs) read(text []byte) error {
	var name, value string
	m := otlp.Read(text)
	for m.Next() {
		switch m.Number {
		case 1:
			name = string(m.Bytes)
		case 2:
			value = string(m.Bytes)
		}
	}
	if m.Err() != nil {
		return m.Err()
	}
	return p.add(name, value)
}

// LokiJSON rewrites a push request of Loki in JSON:
// {"streams": [{"stream": {labels}, "values": [["nanoseconds", "line", {metadata}], …]}, …]}.
func LokiJSON(body []byte, most int) ([]byte, error) {
	s := &stream{request: request{most: most}}
	err := members(body, func(name string, value []byte) error {
		if name != "streams" {
			return nil
		}
		return items(value, s.stream)
	})
	return s.out, err
}

func (s *stream) stream(text []byte) error {
	var labels pairs
	var values [][]byte // a member may be repeated
	err := members(text, func(name string, value []byte) (err error) {
		switch name {
		case "stream":
			labels, err = pairsOf(value)
		case "values":
			values = append(values, slices.Clone(value))
		}
		return err
	})
	if err != nil {
		return err
	}
	if err := s.start(labels); err != nil {
		return err
	}
	for _, lines := range values {
		if err := items(lines, s.value); err != nil {
			return err
		}
	}
	s.endResource()
	return nil
}

func (s *stream) value(text []byte) error {
	var at, line string
	var metadata pairs
	n := 0
	err := items(text, func(item []byte) (err error) {
		switch n++; n {
		case 1:
			err = json.Unmarshal(item, &at)
		case 2:
			err = json.Unmarshal(item, &line)
		case 3:
			metadata, err = pairsOf(item)
		}
		return err
	})
	if err == nil && n < 2 {
		err = fmt.Errorf("the value %.100s has no time and line", text)
	}
	if err != nil {
		return err
	}
	var instant ingest.Instant
	if nanos, err := strconv.ParseInt(at, 10, 64); err == nil && nanos > 0 {
		instant = ingest.Instant{Seconds: nanos / 1e9, Nanos: uint32(nanos % 1e9)} //nolint:gosec // a remainder
	}
	return s.line(instant, at, []byte(line), metadata)
}

func pairsOf(object []byte) (of pairs, err error) {
	err = members(object, func(name string, value []byte) error {
		var text string
		if err := json.Unmarshal(value, &text); err != nil {
			return fmt.Errorf("%.100q is %.100s, and no text", name, value)
		}
		return of.add(name, text)
	})
	return of, err
}
