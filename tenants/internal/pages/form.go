package pages

import (
	"errors"
	"unicode"
	"unicode/utf8"

	"github.com/weirlog/weir/tenants"
)

// FaultOf is the fault of one field as text, or "".
func FaultOf(err error, field string) string {
	var invalid tenants.Invalid
	if !errors.As(err, &invalid) {
		return ""
	}
	for _, fault := range invalid {
		if fault.Field == field {
			return sentence(fault.Detail) + " " + fault.Fix
		}
	}
	return ""
}

// sentence capitalizes text: faults begin with the field's name in the API.
func sentence(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(first)) + text[size:]
}

// IsInvalid reports whether an error is about a form's fields.
func IsInvalid(err error) bool {
	var invalid tenants.Invalid
	return errors.As(err, &invalid)
}
