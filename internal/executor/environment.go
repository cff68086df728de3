package executor

import (
	"net/url"
	"os"
	"strings"
)

// inherited names the variables that an executor gets from the agent's environment. Each
// names a place or a role; one that may hold a secret, such as AWS_SECRET_ACCESS_KEY or
// IDENTITY_HEADER, has no place here.
var inherited = []string{
	"PATH", "HOME", "TMPDIR", "LANG", "SSL_CERT_FILE", "SSL_CERT_DIR",
	"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy",

	"AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE", "AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE", "AWS_CA_BUNDLE",
	"AWS_ROLE_ARN", "AWS_ROLE_SESSION_NAME", "AWS_WEB_IDENTITY_TOKEN_FILE",
	"AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
	"AWS_EC2_METADATA_SERVICE_ENDPOINT", "AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE", "AWS_EC2_METADATA_DISABLED",

	"AZURE_CLIENT_ID", "AZURE_TENANT_ID", "AZURE_AUTHORITY_HOST", "AZURE_FEDERATED_TOKEN_FILE", "AZURE_CONFIG_DIR",
	"AZURE_POD_IDENTITY_AUTHORITY_HOST", "IDENTITY_ENDPOINT", "IMDS_ENDPOINT", "MSI_ENDPOINT",

	"OCI_METADATA_BASE_URL", "OCI_SDK_AUTH_CLIENT_REGION_URL", "OCI_REGION_METADATA", "OCI_DEFAULT_REALM",
}

// environment is that of an executor. It is never nil, which exec would take for all.
func environment() []string {
	env := []string{}
	for _, name := range inherited {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// redact takes out of a text the passwords that the URLs of an environment hold, as that of a
// proxy may, as they are written there and as they are sent.
func redact(text string, env []string) string {
	for _, entry := range env {
		name, value, _ := strings.Cut(entry, "=")
		at := strings.LastIndex(value, "@")
		if at < 0 || !strings.Contains(value, "://") && !strings.HasSuffix(strings.ToLower(name), "_proxy") {
			continue
		}
		user := value[:at]
		if _, after, ok := strings.Cut(user, "://"); ok {
			user = after
		}
		_, written, _ := strings.Cut(user, ":")
		sent, err := url.PathUnescape(written)
		if err != nil {
			sent = written
		}
		text = Redact(text, written, sent)
	}
	return text
}
