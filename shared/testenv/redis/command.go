package redis

import (
	"bufio"
	"errors"
	"strings"

	"github.com/alicebob/miniredis/v2/server"
)

var errNoCommand = errors.New("it is not a command")

// readCommand reads a command as clients send it, an array of strings,
// or as a line of text.
func readCommand(in *bufio.Reader) ([]string, error) {
	first, err := in.Peek(1)
	if err != nil {
		return nil, err
	}
	if first[0] != '*' {
		line, err := in.ReadString('\n')
		return strings.Fields(line), err
	}
	parsed, err := server.ParseReply(in)
	if err != nil {
		return nil, err
	}
	list, ok := parsed.([]any)
	if !ok {
		return nil, errNoCommand
	}
	var words []string
	for _, item := range list {
		word, ok := item.(string)
		if !ok {
			return nil, errNoCommand
		}
		words = append(words, word)
	}
	return words, nil
}
