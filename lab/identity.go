package lab

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// identity is who a component is to the API server, and so in the audit log.
type identity struct {
	who    string // names the kubeconfig
	user   string
	groups []string
}

var identities = []identity{
	{admin, "lab-admin", []string{"system:masters"}},
	{ControllerManager, "system:kube-controller-manager", nil},
	{Scheduler, "system:kube-scheduler", nil},
	{KWOK, "kwok", nil},
	{Karpenter, "karpenter", nil},
}

// writeIdentities makes the CA, all certificates, the ServiceAccount key and one kubeconfig per identity.
func writeIdentities(d layout, p ports) error {
	ca, err := newAuthority()
	if err != nil {
		return err
	}
	serving, err := ca.serving()
	if err != nil {
		return err
	}
	etcdClient, err := ca.client("kube-apiserver-etcd-client")
	if err != nil {
		return err
	}
	signing, err := signingKey()
	if err != nil {
		return err
	}
	files := map[string][]byte{
		d.pki(caCert):         ca.pem(),
		d.pki(servingCert):    serving.cert,
		d.pki(servingKey):     serving.key,
		d.pki(etcdClientCert): etcdClient.cert,
		d.pki(etcdClientKey):  etcdClient.key,
		d.pki(serviceAcctKey): signing,
	}
	for _, id := range identities {
		pair, err := ca.client(id.user, id.groups...)
		if err != nil {
			return err
		}
		content, err := kubeconfig(p, ca.pem(), "default", &clientcmdapi.AuthInfo{
			ClientCertificateData: pair.cert,
			ClientKeyData:         pair.key,
		})
		if err != nil {
			return err
		}
		files[d.kubeconfig(id.who)] = content
	}
	return writeFiles(files)
}

func kubeconfig(p ports, ca []byte, namespace string, auth *clientcmdapi.AuthInfo) ([]byte, error) {
	const name = "tasuki-lab"
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{
		Server:                   "https://" + loopback(p.APIServer),
		CertificateAuthorityData: ca,
	}
	config.AuthInfos[name] = auth
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name, Namespace: namespace}
	config.CurrentContext = name
	content, err := clientcmd.Write(*config)
	if err != nil {
		return nil, fmt.Errorf("encoding a kubeconfig: %w", err)
	}
	return content, nil
}

// writeFiles writes files that only this user may read, making their folders.
func writeFiles(files map[string][]byte) error {
	for path, content := range files {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return fmt.Errorf("writing the lab's files: %w", err)
		}
		if err := os.WriteFile(path, content, 0o600); err != nil {
			return fmt.Errorf("writing the lab's files: %w", err)
		}
	}
	return nil
}

// tokenLife outlasts any test and any demo.
const tokenLife = 24 * 60 * 60

// KubeconfigFor writes a kubeconfig that acts as a ServiceAccount, with a token from the TokenRequest API that is valid
// for a day and the ServiceAccount's namespace as its default, and returns its path. The ServiceAccount must exist.
func (l *Lab) KubeconfigFor(ctx context.Context, namespace, serviceAccount string) (string, error) {
	config, err := l.RESTConfig()
	if err != nil {
		return "", err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return "", fmt.Errorf("connecting to lab %s: %w", l.Name(), err)
	}
	life := int64(tokenLife)
	token, err := client.CoreV1().ServiceAccounts(namespace).CreateToken(ctx, serviceAccount, &authenticationv1.TokenRequest{
		Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &life},
	}, metav1.CreateOptions{})
	if apierrors.IsNotFound(err) {
		return "", fmt.Errorf("ServiceAccount %s/%s does not exist in lab %s: apply it first", namespace, serviceAccount, l.Name())
	}
	if err != nil {
		return "", fmt.Errorf("requesting a token for ServiceAccount %s/%s: %w", namespace, serviceAccount, err)
	}
	content, err := kubeconfig(l.snapshot().Ports, config.CAData, namespace, &clientcmdapi.AuthInfo{Token: token.Status.Token})
	if err != nil {
		return "", err
	}
	// No component's name holds a dot, so no ServiceAccount can take a component's file.
	path := l.dir.kubeconfig("serviceaccount." + namespace + "." + serviceAccount)
	return path, writeFiles(map[string][]byte{path: content})
}
