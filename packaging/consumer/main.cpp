#include <ignis/ignis.h>

#include <iostream>

int main(int, char** argv) {
  ignis::Result<ignis::Session> session = ignis::Session::load(argv[1]);
  if (!session) return std::cerr << session.error().to_string() << "\n", 3;
  std::vector<ignis::HostTensor> inputs;
  for (const ignis::PortInfo& port : session->inputs())
    inputs.push_back(ignis::HostTensor::zeros(port.dtype, port.shape));  // your data goes here
  const auto outputs = session->run(inputs);
  if (!outputs) return std::cerr << outputs.error().to_string() << "\n", 7;
  for (const ignis::HostTensor& output : *outputs)
    std::cout << ignis::to_string(output.shape) << " begins with "
              << ignis::element_as_double(output, 0) << "\n";
}
