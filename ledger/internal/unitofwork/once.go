package unitofwork

import (
	"encoding/json"
	"fmt"

	"github.com/weirlog/weir/shared/answers"
)

// once is a request with its input, which has its effect once.
func once(organization string, request Request, input any) (answers.Request, error) {
	text, err := json.Marshal(input)
	return answers.NewRequest("answers", organization, request.IdempotencyKey, append([]byte(nameOf(input)), text...)), err
}

// An Input names itself in the hash of a request, where the name of its
// type has changed since requests were kept.
type Input interface{ InputName() string }

func nameOf(input any) string {
	if named, ok := input.(Input); ok {
		return named.InputName()
	}
	return fmt.Sprintf("%T", input)
}
