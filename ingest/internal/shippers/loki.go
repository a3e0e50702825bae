package shippers

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/klauspost/compress/s2"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/weirlog/weir/ingest"
)

// A pair is a label, or a member of structured metadata.
type pair struct{ name, value string }

// levelLabels are what levels are called, the first that is one counts.
var levelLabels = []string{"level", "severity", "detected_level"}

// takeLevel removes the level from pairs and returns it; "": there is none.
func takeLevel(pairs []pair) (level string, others []pair) {
	for _, name := range levelLabels {
		i := slices.IndexFunc(pairs, func(p pair) bool { return p.name == name })
		if i < 0 {
			continue
		}
		level = pairs[i].value
		if _, known := ingest.LevelNamed([]byte(level)); known {
			return level, slices.Delete(pairs, i, i+1)
		}
	}
	return "", pairs
}

// startStream begins the records of a stream with labels.
func (r *request) startStream(labels []pair) (level string) {
	level, labels = takeLevel(labels)
	for _, l := range labels {
		if l.name == "env" || l.name == "environment" {
			l.name = environment
		}
		r.resource = appendAttribute(r.resource, resourceAttribute, l.name, stringOf([]byte(l.value)))
	}
	return level
}

func (r *request) line(at ingest.Instant, level string, line []byte, metadata []pair) {
	r.appendTime(at)
	if own, others := takeLevel(metadata); own != "" {
		level, metadata = own, others
	}
	r.record = appendMessage(r.record, severityText, []byte(level))
	r.record = appendMessage(r.record, bodyField, stringOf(line))
	for _, m := range metadata {
		r.record = appendAttribute(r.record, recordAttribute, m.name, stringOf([]byte(m.value)))
	}
	r.endRecord()
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

// Loki rewrites a push request of Loki: protobuf, compressed by Snappy.
func Loki(body []byte) ([]byte, error) {
	plain, err := s2.Decode(nil, body)
	if err != nil {
		return nil, fmt.Errorf("it is not compressed by Snappy: %w", err)
	}
	r := new(request)
	err = messages(plain, 1, func(stream []byte) error {
		labels, err := labelsOf(stream)
		if err != nil {
			return err
		}
		level := r.startStream(labels)
		if err := messages(stream, 2, func(entry []byte) error { return r.lokiEntry(entry, level) }); err != nil {
			return err
		}
		r.endResource()
		return nil
	})
	return r.out, err
}

// labelsOf reads the labels of a stream: a selector such as {app="cart", env="prod"}.
func labelsOf(stream []byte) (labels []pair, err error) {
	err = messages(stream, 1, func(text []byte) error {
		rest := strings.TrimSpace(string(text))
		if !strings.HasPrefix(rest, "{") || !strings.HasSuffix(rest, "}") {
			return fmt.Errorf("the labels %.100q are not in braces", text)
		}
		for rest = strings.TrimSpace(rest[1 : len(rest)-1]); rest != ""; rest = strings.TrimLeft(rest, ", ") {
			name, after, _ := strings.Cut(rest, "=")
			quoted, err := strconv.QuotedPrefix(after)
			if err != nil {
				return fmt.Errorf("the labels %.100q can't be read", text)
			}
			value, err := strconv.Unquote(quoted)
			if err != nil {
				return fmt.Errorf("the labels %.100q can't be read", text)
			}
			labels = append(labels, pair{strings.TrimSpace(name), value})
			rest = after[len(quoted):]
		}
		return nil
	})
	return labels, err
}

func (r *request) lokiEntry(entry []byte, level string) error {
	var at ingest.Instant
	var line []byte
	var metadata []pair
	err := fieldsOf(entry, func(field protowire.Number, text []byte, _ uint64) error {
		switch field {
		case 1: // Timestamp
			return fieldsOf(text, func(field protowire.Number, _ []byte, value uint64) error {
				switch field {
				case 1:
					at.Seconds = int64(value) //nolint:gosec // two's complement by the format
				case 2:
					at.Nanos = uint32(min(value, 999_999_999)) //nolint:gosec // bounded
				}
				return nil
			})
		case 2:
			line = text
		case 3: // LabelPair
			var m pair
			err := fieldsOf(text, func(field protowire.Number, text []byte, _ uint64) error {
				switch field {
				case 1:
					m.name = string(text)
				case 2:
					m.value = string(text)
				}
				return nil
			})
			metadata = append(metadata, m)
			return err
		}
		return nil
	})
	r.line(at, level, line, metadata)
	return err
}

// LokiJSON rewrites a push request of Loki in JSON:
// {"streams": [{"stream": {labels}, "values": [["nanoseconds", "line", {metadata}], …]}, …]}.
func LokiJSON(body []byte) ([]byte, error) {
	r := new(request)
	err := members(body, func(name string, value []byte) error {
		if name != "streams" {
			return nil
		}
		return items(value, r.lokiStream)
	})
	return r.out, err
}

func (r *request) lokiStream(stream []byte) error {
	var labels []pair
	var values []byte
	err := members(stream, func(name string, value []byte) (err error) {
		switch name {
		case "stream":
			labels, err = pairsOf(value)
		case "values":
			values = slices.Clone(value)
		}
		return err
	})
	if err != nil {
		return err
	}
	level := r.startStream(labels)
	if err := items(values, func(value []byte) error { return r.lokiValue(value, level) }); err != nil {
		return err
	}
	r.endResource()
	return nil
}

func (r *request) lokiValue(value []byte, level string) error {
	var at ingest.Instant
	var line string
	var metadata []pair
	n := 0
	err := items(value, func(item []byte) (err error) {
		switch n++; n {
		case 1:
			var nanos string
			if err = json.Unmarshal(item, &nanos); err == nil {
				at, err = nanosecondsOf(nanos)
			}
		case 2:
			err = json.Unmarshal(item, &line)
		case 3:
			metadata, err = pairsOf(item)
		}
		return err
	})
	if err == nil && n < 2 {
		err = fmt.Errorf("the value %.100s has no time and line", value)
	}
	r.line(at, level, []byte(line), metadata)
	return err
}

func nanosecondsOf(text string) (ingest.Instant, error) {
	nanos, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return ingest.Instant{}, fmt.Errorf("the time %.100q is no number of nanoseconds since 1970", text)
	}
	return ingest.Instant{Seconds: nanos / 1e9, Nanos: uint32(max(0, nanos%1e9))}, nil //nolint:gosec // those before 1970 are left out
}

func pairsOf(object []byte) (pairs []pair, err error) {
	err = members(object, func(name string, value []byte) error {
		p := pair{name: name}
		if err := json.Unmarshal(value, &p.value); err != nil {
			return fmt.Errorf("%.100q is %.100s, and no text", name, value)
		}
		pairs = append(pairs, p)
		return nil
	})
	return pairs, err
}
