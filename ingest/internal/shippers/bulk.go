package shippers

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/weirlog/weir/ingest"
)

// An Item is what a bulk request wants done with a document.
type Item struct {
	Action string // create or index
	Index  string
	ID     string
	Record int    // which record it became; -1: none
	Fault  string // why
}

// Bulk rewrites a bulk request of Elasticsearch: a line with an action, then
// one with the document. Documents whose items all have an _id have it as
// log.record.uid, so that a repetition is known. One that can't be read
// becomes no record. The error says which line is no action, or that there
// are more than most items.
func Bulk(body []byte, most int) (request []byte, bulk []Item, err error) {
	w := bulkWriter{}
	for line := range bytes.Lines(body) {
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		if err := w.read(line); err != nil {
			return nil, nil, fmt.Errorf("line %d: %w", w.lines, err)
		}
		if len(w.items) > most {
			return nil, nil, fmt.Errorf("it has more than %d actions", most)
		}
	}
	if w.open {
		return nil, nil, errors.New("the document of the last action is missing")
	}
	return w.out, w.items, nil
}

type bulkWriter struct {
	request
	items   []Item
	open    bool // the last item has no document yet
	lines   int
	written int
}

func (w *bulkWriter) read(line []byte) error {
	w.lines++
	if !w.open {
		return w.action(line)
	}
	w.open = false
	item := &w.items[len(w.items)-1]
	if item.Fault != "" {
		return nil
	}
	if err := w.document(line, item.ID); err != nil {
		item.Fault = err.Error()
		w.record, w.resource = w.record[:0], w.resource[:0]
		return nil
	}
	w.endRecord()
	w.endResource()
	item.Record = w.written
	w.written++
	return nil
}

func (w *bulkWriter) action(line []byte) error {
	var actions map[string]struct {
		Index string `json:"_index"`
		ID    string `json:"_id"`
	}
	if err := json.Unmarshal(line, &actions); err != nil || len(actions) != 1 {
		return fmt.Errorf(`there is %.100q instead of an action such as {"create": {}}`, line)
	}
	for name, of := range actions {
		item := Item{Action: name, Index: of.Index, ID: of.ID, Record: -1}
		if name != "create" && name != "index" {
			item.Fault = fmt.Sprintf("There is no %.20s: logs are only added, by create or index.", name)
		}
		w.items = append(w.items, item)
		w.open = name != "delete" // which has no document
	}
	return nil
}

// A fieldKind is what a field of a document becomes.
type fieldKind int

const (
	attributeField fieldKind = iota
	instantField
	messageField
	levelField
	environmentField
	errorField // an object
)

var fieldKinds = map[string]fieldKind{
	"@timestamp": instantField, "timestamp": instantField,
	"message": messageField, "log": messageField, "msg": messageField,
	"log.level": levelField, "level": levelField, "severity": levelField,
	"error": errorField, "service.environment": environmentField,
}

// renamed are fields that OpenTelemetry calls otherwise.
var renamed = map[string]string{
	"error.type": "exception.type", "error.message": "exception.message", "error.stack_trace": "exception.stacktrace",
}

// maxFields is how many a document may have: records have at most 1,000 attributes.
const maxFields = 950

func (w *bulkWriter) document(line []byte, id string) error {
	var done [errorField + 1]bool
	fields := 0
	err := members(line, func(name string, value []byte) error {
		if fields++; fields > maxFields {
			return fmt.Errorf("it has more than %d fields", maxFields)
		}
		kind := fieldKinds[name]
		if kind != attributeField && !done[kind] && w.take(kind, value) {
			done[kind] = true
			return nil
		}
		if name == "log" || name == "service" {
			w.nested(name, value)
		}
		return w.attribute(name, value)
	})
	if err != nil {
		return fmt.Errorf("The document can't be read: %.300w.", err) //nolint:staticcheck // a sentence for people
	}
	if id != "" {
		w.record = appendAttribute(w.record, recordAttribute, "log.record.uid", stringOf([]byte(id)))
	}
	return nil
}

// take writes the part of a record that a field is, unless its value does not fit.
func (w *bulkWriter) take(kind fieldKind, value []byte) bool {
	if kind == errorField {
		return w.failure(value)
	}
	var text string
	isText := json.Unmarshal(value, &text) == nil
	switch kind {
	case instantField:
		if !isText {
			text = string(value)
		}
		at, ok := ingest.ReadInstant([]byte(text))
		if ok {
			w.appendTime(at)
		}
		return ok
	case messageField:
		if isText {
			w.record = appendMessage(w.record, bodyField, stringOf([]byte(text)))
		}
		return isText
	}
	if kind == environmentField {
		w.resource = appendAttribute(w.resource[:0], resourceAttribute, environment, stringOf([]byte(text)))
		return isText
	}
	_, known := ingest.LevelNamed([]byte(text))
	if known {
		w.record = appendMessage(w.record, severityText, []byte(text))
	}
	return known
}

// failure writes an error that is an object of texts.
func (w *bulkWriter) failure(value []byte) bool {
	if value[0] != '{' || bytes.Count(value, []byte(":")) > 20 { // more than an error's own fields, which stay together
		return false
	}
	err := members(value, func(name string, value []byte) error { return w.attribute("error."+name, value) })
	return err == nil
}

// nested writes what OpenTelemetry has a place for in an object that stays
// an attribute.
func (w *bulkWriter) nested(object string, value []byte) {
	if value[0] != '{' {
		return
	}
	_ = members(value, func(name string, value []byte) error { // it was read once already
		switch object + "." + name {
		case "log.level":
			w.take(levelField, value)
		case "service.environment":
			w.take(environmentField, value)
		}
		return nil
	})
}

func (w *bulkWriter) attribute(name string, value []byte) error {
	if as, ok := renamed[name]; ok {
		name = as
	}
	converted, err := anyOf(decoderOf(value), 1)
	if err == nil {
		w.record = appendAttribute(w.record, recordAttribute, name, converted)
	}
	return err
}
