package shippers

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/weirlog/weir/ingest"
)

// An Item is what a bulk request wants done with a document.
type Item struct {
	Action string // create or index
	Index  string
	ID     string
	Record int    // which record it became; -1: none
	Fault  string // why
	Sent   []byte // of the first with a fault: see ingest.BeginningOf, the document
	Cut    bool
}

// Bulk rewrites a bulk request of Elasticsearch with at most so many
// documents: a line with an action, then one with the document. If all items
// have an _id, each record has that as its log.record.uid, so that a
// repetition is known. A document that can't be read becomes no record. The
// error says which line is no action, or that there are more items.
func Bulk(body []byte, most int) (request []byte, bulk []Item, err error) {
	w := bulkWriter{}
	w.most = most
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
	items []Item
	open  bool // the last item has no document yet
	lines int
	taken [kinds]bool // what the record has already

	sampled int // documents with a fault
}

func (w *bulkWriter) read(line []byte) error {
	w.lines++
	if !w.open {
		return w.action(line)
	}
	w.open = false
	item := &w.items[len(w.items)-1]
	if item.Fault != "" {
		w.sample(line, item)
		return nil
	}
	if item.Fault = faultOf(w.document(line, item)); item.Fault != "" {
		w.sample(line, item)
		w.record, w.resource, w.attributes = w.record[:0], w.resource[:0], 0
		return nil
	}
	item.Record = w.written
	if err := w.endRecord(); err != nil {
		return err
	}
	w.endResource()
	return nil
}

// sample keeps the beginning of a document with a fault.
func (w *bulkWriter) sample(line []byte, item *Item) {
	if w.sampled < ingest.SamplesOfCode {
		w.sampled++
		item.Sent, item.Cut = ingest.BeginningOf(line)
		item.Sent = bytes.Clone(item.Sent)
	}
}

// faultOf is why a document can't be read; "": it can.
func faultOf(err error) string {
	if err == nil {
		return ""
	}
	return fmt.Sprintf("The document can't be read: %.300v.", err)
}

func (w *bulkWriter) action(line []byte) error {
	var actions map[string]struct {
		Index string `json:"_index"`
		ID    any    `json:"_id"`
	}
	if err := json.Unmarshal(line, &actions); err != nil || len(actions) != 1 {
		return fmt.Errorf(`there is %.100q instead of an action such as {"create": {}}`, line)
	}
	for name, of := range actions {
		item := Item{Action: name, Index: of.Index, ID: idOf(of.ID), Record: -1}
		if name != "create" && name != "index" {
			item.Fault = fmt.Sprintf("There is no %.20s: logs are only added, by create or index.", name)
		}
		w.items = append(w.items, item)
		w.open = name != "delete" // which has no document
	}
	return nil
}

// idOf is an _id, which may be a number.
func idOf(id any) string {
	switch id := id.(type) {
	case string:
		return id
	case float64:
		return strconv.FormatFloat(id, 'f', -1, 64)
	}
	return ""
}

// A kind is what a field of a document becomes.
type kind int

const (
	attributeKind kind = iota
	timeKind
	messageKind
	levelKind
	environmentKind
	kinds
)

// fields are those that become more than attributes, by their names with
// dots. The first of a kind that fits counts.
var fields = map[string]kind{
	"@timestamp": timeKind, "timestamp": timeKind,
	"message": messageKind, "log": messageKind, "msg": messageKind,
	"log.level": levelKind, "level": levelKind, "severity": levelKind,
	"service.environment": environmentKind,
}

// exceptions are fields that OpenTelemetry calls otherwise.
var exceptions = map[string]string{
	"error.type": "exception.type", "error.message": "exception.message", "error.stack_trace": "exception.stacktrace",
}

// opened are objects of which a member may become more than a part of an attribute.
var opened = map[string]bool{"log": true, "service": true, "error": true}

func (w *bulkWriter) document(line []byte, item *Item) error {
	w.taken = [kinds]bool{}
	if err := members(line, w.field); err != nil {
		return err
	}
	if item.Index != "" {
		if err := w.attribute("_index", stringOf([]byte(item.Index))); err != nil {
			return err
		}
	}
	if item.ID == "" {
		return nil
	}
	return w.attribute("log.record.uid", stringOf([]byte(item.ID)))
}

// field writes a field of a document. Objects stay whole, but for an error.
func (w *bulkWriter) field(name string, value []byte) error {
	if opened[name] && value[0] == '{' {
		if name == "error" {
			return members(value, func(member string, value []byte) error { return w.plain(name+"."+member, value) })
		}
		err := members(value, func(member string, value []byte) error {
			w.take(name+"."+member, value)
			return nil
		})
		if err != nil {
			return err
		}
		return w.plain(name, value)
	}
	if w.take(name, value) && fields[name] != environmentKind {
		return nil
	}
	return w.plain(name, value)
}

// plain writes a field as an attribute.
func (w *bulkWriter) plain(name string, value []byte) error {
	if as, is := exceptions[name]; is && value[0] == '"' {
		name = as
	}
	converted, err := anyOf(decoderOf(value), 1)
	if err != nil {
		return err
	}
	return w.attribute(name, converted)
}

// take writes the part of a record that a field is, if it fits and none was before.
func (w *bulkWriter) take(name string, value []byte) (fits bool) {
	kind := fields[name]
	if kind == attributeKind || w.taken[kind] {
		return false
	}
	text, isText := textOf(value)
	switch kind {
	case timeKind:
		at, is := ingest.ReadInstant(text)
		fits = is && w.time(at)
	case messageKind:
		if fits = isText; fits {
			w.record = appendMessage(w.record, bodyField, stringOf(text))
		}
	case levelKind:
		if _, fits = ingest.LevelNamed(text); fits {
			w.record = appendMessage(w.record, severityText, text)
		}
	case environmentKind:
		if fits = isText; fits {
			w.resource = appendAttribute(w.resource, resourceAttribute, environment, stringOf(text))
		}
	}
	w.taken[kind] = fits
	return fits
}

// textOf returns a text, or a number as it is written.
func textOf(value []byte) (text []byte, isText bool) {
	if value[0] != '"' {
		return value, false
	}
	var unquoted string
	if json.Unmarshal(value, &unquoted) != nil {
		return nil, false
	}
	return []byte(unquoted), true
}
