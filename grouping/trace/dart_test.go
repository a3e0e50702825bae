package trace

import "testing"

// Dart prints errors without, before or behind their name. However
// they are sent, they have it, and what remains is the message.
func TestDartErrors(t *testing.T) {
	const stack = "#0      Cart.total (package:shop/cart.dart:12:5)\n#1      main (file:///app/bin/main.dart:5:3)"
	for printed, want := range map[string]Span{
		"Bad state: No element": {Type: "StateError", Message: "No element"},
		"NoSuchMethodError: The getter 'price' was called on null.":               {Type: "NoSuchMethodError", Message: "The getter 'price' was called on null."},
		"RangeError (index): Invalid value: Not in inclusive range 0..2: 5":       {Type: "RangeError", Message: "Invalid value: Not in inclusive range 0..2: 5"},
		"type 'Null' is not a subtype of type 'String' in type cast":              {Type: "TypeError", Message: "type 'Null' is not a subtype of type 'String' in type cast"},
		"FormatException: Unexpected character (at character 1)":                  {Type: "FormatException", Message: "Unexpected character (at character 1)"},
		"Invalid argument(s): no such cart":                                       {Type: "ArgumentError", Message: "no such cart"},
		"Invalid argument (id): Must not be null":                                 {Type: "ArgumentError", Message: "Must not be null"},
		"Unsupported operation: Cannot add to an unmodifiable list":               {Type: "UnsupportedError", Message: "Cannot add to an unmodifiable list"},
		"Null check operator used on a null value":                                {Type: "TypeError", Message: "Null check operator used on a null value"},
		"Concurrent modification during iteration: Instance of 'List'.":           {Type: "ConcurrentModificationError", Message: "Concurrent modification during iteration: Instance of 'List'."},
		"TimeoutException after 0:00:05.000000: Future not completed":             {Type: "TimeoutException", Message: "TimeoutException after 0:00:05.000000: Future not completed"},
		"PlatformException(io, no route, null, null)":                             {Type: "PlatformException", Message: "io, no route, null, null)"},
		"Instance of 'CartClosed'":                                                {Type: "CartClosed"},
		"'package:shop/cart.dart': Failed assertion: line 12 pos 5: 'n > 0': bad": {Type: "AssertionError", Message: "'package:shop/cart.dart': Failed assertion: line 12 pos 5: 'n > 0': bad"},
		"LateInitializationError: Field 'cart' has not been initialized.":         {Type: "LateInitializationError", Message: "Field 'cart' has not been initialized."},
		"Exception: no such cart":                                                 {Type: "Exception", Message: "no such cart"},
	} {
		for form, sent := range map[string][3]string{
			"a program":        {"", "", "Unhandled exception:\n" + printed + "\n" + stack},
			"Flutter's log":    {"", "", "E/flutter ( 1234): [ERROR:flutter/runtime/dart_vm_initializer.cc(41)] Unhandled Exception: " + printed + "\n" + stack},
			"nothing before":   {"", "", printed + "\n" + stack},
			"the message":      {"", printed, stack},
			"type and message": {"_" + want.Type, printed, stack},
			"Flutter":          {"", "", "The following _" + want.Type + " was thrown building CartView:\n" + printed + "\n" + stack},
		} {
			var got Trace
			got.Read(sent[0], sent[1], []string{sent[2]}, nil, nil)
			if s := got.Outermost(); got.Language() != Dart || s.Type != want.Type || s.Message != want.Message {
				t.Errorf("%s of %q is %q, %q", form, printed, s.Type, s.Message)
			}
		}
	}
}
