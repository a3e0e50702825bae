package shippers

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
	"google.golang.org/protobuf/encoding/protowire"
)

// members calls each with the members of an object, and items with the
// items of an array. Each may keep nothing of what it gets.
func members(object []byte, each func(name string, value []byte) error) error {
	decoder := decoderOf(object)
	return elements(decoder, '{', func(value jsontext.Value) error {
		var name string
		if err := json.Unmarshal(value, &name); err != nil {
			return err
		}
		value, err := decoder.ReadValue()
		if err != nil {
			return err
		}
		return each(name, value)
	})
}

func items(array []byte, each func(item []byte) error) error {
	return elements(decoderOf(array), '[', func(value jsontext.Value) error { return each(value) })
}

func decoderOf(text []byte) *jsontext.Decoder {
	return jsontext.NewDecoder(bytes.NewReader(text), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

func elements(decoder *jsontext.Decoder, kind jsontext.Kind, each func(jsontext.Value) error) error {
	if opens := decoder.PeekKind(); opens != kind {
		value, err := decoder.ReadValue()
		if err != nil || opens == 'n' { // null is empty
			return err
		}
		return fmt.Errorf("there is %.100s instead of %c", value, kind)
	}
	if _, err := decoder.ReadToken(); err != nil {
		return err
	}
	for decoder.PeekKind() > 0 && decoder.PeekKind() != kind+2 { // ] and } are two after [ and {
		value, err := decoder.ReadValue()
		if err != nil {
			return err
		}
		if err := each(value); err != nil {
			return err
		}
	}
	if _, err := decoder.ReadToken(); err != nil {
		return err
	}
	if _, err := decoder.ReadToken(); !errors.Is(err, io.EOF) {
		return errors.New("there is data after its end")
	}
	return nil
}

// maxDepth is how deep values may nest.
const maxDepth = 64

// anyOf reads a value and returns it as an AnyValue.
func anyOf(decoder *jsontext.Decoder, depth int) ([]byte, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("its values nest more than %d levels deep", maxDepth)
	}
	token, err := decoder.ReadToken()
	if err != nil {
		return nil, err
	}
	switch token.Kind() {
	case '"':
		return stringOf([]byte(token.String())), nil
	case 't', 'f':
		return protowire.AppendVarint(protowire.AppendTag(nil, boolValue, protowire.VarintType), protowire.EncodeBool(token.Bool())), nil
	case '0':
		return number(token.String())
	case '[':
		return anyArray(decoder, depth)
	case '{':
		return anyObject(decoder, depth)
	}
	return nil, nil // null
}

func anyArray(decoder *jsontext.Decoder, depth int) ([]byte, error) {
	var array []byte
	for decoder.PeekKind() != ']' {
		item, err := anyOf(decoder, depth+1)
		if err != nil {
			return nil, err
		}
		array = appendMessage(array, 1, item)
	}
	_, err := decoder.ReadToken()
	return appendMessage(nil, arrayValue, array), err
}

func anyObject(decoder *jsontext.Decoder, depth int) ([]byte, error) {
	var object []byte
	for decoder.PeekKind() != '}' {
		token, err := decoder.ReadToken()
		if err != nil {
			return nil, err
		}
		name := token.String()
		value, err := anyOf(decoder, depth+1)
		if err != nil {
			return nil, err
		}
		object = appendAttribute(object, 1, name, value)
	}
	_, err := decoder.ReadToken()
	return appendMessage(nil, mapValue, object), err
}

func number(text string) ([]byte, error) {
	if whole, err := strconv.ParseInt(text, 10, 64); err == nil {
		return protowire.AppendVarint(protowire.AppendTag(nil, intValue, protowire.VarintType), uint64(whole)), nil //nolint:gosec // two's complement by the format
	}
	inexact, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return nil, fmt.Errorf("the number %.100s is too large", text)
	}
	return protowire.AppendFixed64(protowire.AppendTag(nil, doubleValue, protowire.Fixed64Type), math.Float64bits(inexact)), nil
}
