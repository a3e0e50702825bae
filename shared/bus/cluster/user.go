package cluster

import (
	"context"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha512"
	"fmt"
	"maps"
	"slices"

	kafka "github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/protocol/alteruserscramcredentials"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/internal/broker"
)

// SetPasswords creates users who sign in by SCRAM-SHA-512, or changes
// their passwords. It sends hashes, which are enough to sign in: call
// it over TLS or on the broker's machine.
func SetPasswords(ctx context.Context, brokers []string, dialer *bus.Dialer, passwords map[string]string) error {
	c := broker.NewCluster(brokers, dialer)
	defer c.Close()
	request := &alteruserscramcredentials.Request{}
	for _, user := range slices.Sorted(maps.Keys(passwords)) {
		made, err := credential(user, passwords[user])
		if err != nil {
			return fmt.Errorf("cannot hash the password of %q: %w", user, err)
		}
		request.Upsertions = append(request.Upsertions, made)
	}
	answer, err := c.Ask(ctx, request)
	if err != nil {
		return fmt.Errorf("cannot make users at the brokers: %w", err)
	}
	for _, result := range answer.(*alteruserscramcredentials.Response).Results {
		if result.ErrorCode != 0 {
			return fmt.Errorf("cannot make user %q at the brokers: %w: %s", result.User, kafka.Error(result.ErrorCode), result.ErrorMessage)
		}
	}
	return nil
}

// credential returns how a broker stores a user, hashed in the broker's
// default number of rounds.
func credential(user, password string) (made alteruserscramcredentials.RequestUserScramCredentialsUpsertion, err error) {
	const sha512Mechanism, rounds, saltBytes = 2, 4096, 16
	made.Name, made.Mechanism, made.Iterations, made.Salt = user, sha512Mechanism, rounds, make([]byte, saltBytes)
	_, _ = rand.Read(made.Salt) // never fails
	made.SaltedPassword, err = pbkdf2.Key(sha512.New, password, made.Salt, rounds, sha512.Size)
	return made, err
}
