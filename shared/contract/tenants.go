package contract

import "time"

// OrganizationCreated is a fact on weir.tenants.v1.
type OrganizationCreated struct {
	Organization string    `json:"organization"`
	Name         string    `json:"name"`
	Tier         string    `json:"tier"`
	CreatedAt    time.Time `json:"created_at"`
}

// ProjectCreated is a fact on weir.tenants.v1.
type ProjectCreated struct {
	Organization string    `json:"organization"`
	Project      string    `json:"project"`
	Name         string    `json:"name"`
	CreatedAt    time.Time `json:"created_at"`
}

// OrganizationRenamed is a fact on weir.tenants.v1.
type OrganizationRenamed struct {
	Organization string    `json:"organization"`
	Name         string    `json:"name"`
	RenamedAt    time.Time `json:"renamed_at"`
}

// ProjectRenamed is a fact on weir.tenants.v1.
type ProjectRenamed struct {
	Organization string    `json:"organization"`
	Project      string    `json:"project"`
	Name         string    `json:"name"`
	RenamedAt    time.Time `json:"renamed_at"`
}

// APIKeyIssued is a fact on weir.tenants.v1. It never contains the key.
type APIKeyIssued struct {
	Organization string    `json:"organization"`
	Project      string    `json:"project"`
	APIKey       string    `json:"api_key"` // its id
	Environment  string    `json:"environment"`
	Name         string    `json:"name"`
	IssuedAt     time.Time `json:"issued_at"`
}

// APIKeyRevoked is a fact on weir.tenants.v1.
type APIKeyRevoked struct {
	Organization string    `json:"organization"`
	Project      string    `json:"project"`
	APIKey       string    `json:"api_key"` // its id
	Reason       string    `json:"reason"`
	RevokedAt    time.Time `json:"revoked_at"`
}
