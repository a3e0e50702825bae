package process

import (
	"errors"
	"fmt"
	"net/url"
)

// CheckBrokers reports what is wrong with the setting WEIR_BROKERS.
func CheckBrokers(brokers []string) error {
	if len(brokers) == 0 {
		return errors.New("WEIR_BROKERS is empty: name at least one broker as host:port")
	}
	return nil
}

// CheckDatabaseURL reports what is wrong with a setting such as
// WEIR_DATABASE_URL. It never shows the value, which holds a password.
func CheckDatabaseURL(variable, text string) error {
	if text == "" {
		return fmt.Errorf("%[1]s is empty: name a database as postgres://user:password@host/database, or in %[1]s%[2]s a file that does", variable, FileSuffix)
	}
	if u, err := url.Parse(text); err != nil || (u.Scheme != "postgres" && u.Scheme != "postgresql") {
		return fmt.Errorf("%s is not a URL such as postgres://user:password@host/database", variable)
	}
	return nil
}
