package process

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/weirlog/weir/shared/httpapi"
)

// FileSuffix ends the name of a secret's variable that names a file instead.
const FileSuffix = "_FILE"

// SecretFiles lets every secret setting be given as a file:
// WEIR_DATABASE_URL_FILE names the file with WEIR_DATABASE_URL. Tools
// show environments and children inherit them, unlike files.
func SecretFiles() kong.Option {
	return kong.OptionFunc(func(k *kong.Kong) error {
		return errors.Join(kong.Resolvers(kong.ResolverFunc(fromFile)).Apply(k), kong.ValueFormatter(secretHelp).Apply(k))
	})
}

func fromFile(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	if !isSecret(flag.Value) {
		return nil, nil
	}
	for _, variable := range flag.Tag.Envs {
		name := os.Getenv(variable + FileSuffix)
		if name == "" {
			continue
		}
		if os.Getenv(variable) != "" {
			return nil, fmt.Errorf("set one of %s and %s", variable, variable+FileSuffix)
		}
		return SecretIn(name, variable+FileSuffix)
	}
	return nil, nil
}

// SecretIn returns the secret in a file that a variable names.
func SecretIn(name, variable string) (string, error) {
	content, err := os.ReadFile(name)
	if err != nil {
		return "", fmt.Errorf("cannot read %s: %w", variable, err)
	}
	secret := strings.TrimSpace(string(content))
	if secret == "" {
		return "", fmt.Errorf("the file %q (%s) is empty", name, variable)
	}
	return secret, nil
}

func isSecret(value *kong.Value) bool {
	return value.Target.IsValid() && value.Target.Type() == reflect.TypeFor[httpapi.Secret]()
}

func secretHelp(value *kong.Value) string {
	help := kong.DefaultHelpValueFormatter(value)
	if !isSecret(value) || len(value.Tag.Envs) == 0 {
		return help
	}
	return strings.TrimSuffix(help, ").") + ", or a file that holds it in $" + value.Tag.Envs[0] + FileSuffix + ")."
}
