{{workloadFile}}
