package shipper

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Names under which loggers have the members of an entry, the first one counting.
var (
	messageNames   = []string{"message", "msg", "event", "log"}
	timestampNames = []string{"timestamp", "time", "ts", "@timestamp", "date"}
	levelNames     = []string{"level", "severity", "lvl", "levelname"}
	keptNames      = []string{"environment", "metadata", "error", "project_id"}
)

// maxMessage is how much of a line is its message, in bytes.
const maxMessage = 10 << 10

// Defaults are what entries have that their lines don't say.
type Defaults struct {
	Level       string
	Environment string // empty: that of the API key
}

// Entry makes an entry of a line that was read at a time: of an object of
// JSON its members, else the line is the message. Members that an entry does
// not have become metadata.
func (d Defaults) Entry(line []byte, now time.Time) []byte {
	var members map[string]json.RawMessage
	if line[0] != '{' || json.Unmarshal(line, &members) != nil {
		members = map[string]json.RawMessage{"message": quote(strings.ToValidUTF8(string(line), "\ufffd"))}
	}
	entry := map[string]json.RawMessage{
		"timestamp": pick(members, timestampNames, quote(now.UTC().Format(time.RFC3339Nano))),
		"level":     pick(members, levelNames, quote(d.Level)),
	}
	message := pick(members, messageNames, quote(""))
	var text string
	if json.Unmarshal(message, &text) != nil {
		text = string(message)
	}
	if d.Environment != "" {
		entry["environment"] = quote(d.Environment)
	}
	for _, name := range keptNames {
		if value, given := members[name]; given && (name != "error" && name != "metadata" || value[0] == '{') {
			entry[name] = value
			delete(members, name)
		}
	}
	if len(text) > maxMessage {
		members["line"] = quote(text)
		text = cut(text)
	}
	entry["message"] = quote(text)
	if len(members) > 0 {
		entry["metadata"] = merged(entry["metadata"], members)
	}
	return encode(entry)
}

// pick takes the first of the named members.
func pick(members map[string]json.RawMessage, names []string, instead json.RawMessage) json.RawMessage {
	for _, name := range names {
		if value, given := members[name]; given && !bytes.Equal(value, []byte("null")) {
			delete(members, name)
			return value
		}
	}
	return instead
}

// merged adds members to metadata that may be there.
func merged(metadata json.RawMessage, members map[string]json.RawMessage) json.RawMessage {
	var all map[string]json.RawMessage
	if metadata == nil || json.Unmarshal(metadata, &all) != nil {
		return encode(members)
	}
	for name, value := range members {
		if _, given := all[name]; !given {
			all[name] = value
		}
	}
	return encode(all)
}

// cut shortens a message to its limit, at the end of a character.
func cut(text string) string {
	end := maxMessage - len("…")
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "…"
}

func quote(text string) json.RawMessage { return encode(text) }

func encode(value any) json.RawMessage {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		panic("BUG: cannot encode an entry: " + err.Error())
	}
	return slices.Clip(bytes.TrimSuffix(text.Bytes(), []byte("\n")))
}
