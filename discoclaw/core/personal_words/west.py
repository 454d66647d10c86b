"""Words that show what a text is about: English, German and the large Romance languages. Data only."""

LATIN: dict[str, dict[str, str]] = {
    "many": {  # names of medicines and illnesses, and words that many languages share
        "health": """
    sertralin- fluoxetin- paroxetin- citalopram- escitalopram- venlafaxin- duloxetin- mirtazapin- bupropion-
    prozac zoloft xanax ritalin- adderall elvanse vyvanse concerta methylphenidat- metilfenidat-
    lithiumcarb- -azepam- -azolam- quetiapin- olanzapin- aripiprazol- risperidon- lamotrigin- pregabalin-
    gabapentin- metformin- ozempic semaglutid- insulin- insulina- metoprolol- bisoprolol- ramipril-
    warfarin- atorvastatin- ibuprofen- paracetamol- tramadol- oxycodon- morphin- methadon- prednison-
    prednisolon- cortison- kortison- amoxicillin- levothyrox- omeprazol- pantoprazol- tamoxifen- antidepres-
    antibioti- diabet- alergi- alerji- psychiat- psichiatr- psiquiatr- psykiat- psychotherap- psicoterap-
    psikoterap- psikiyatr- psikiater- depres- depresi- asthma- asma astma- astım- autis- autyst- otizm-
    epilep- schizo- adhd adhs tdah hiv covid- dyslexi- dislexi- anorexi- bulimi- leukemi- leukämi- leucemi-
    chemotherap- chimiotherap- quimioterap- chemioterap- kemoterap- cemoterap- dialys- diályz- hepatit-
    bipolar burnout burn_out parkinson- alzheimer- tourette endometrios- fibromyalg- colitis colite
    parkinsons depressi- burnout_syndrom migrain- migräne migränen migrän migren migreni migrenim migrena
    migreny migrenę migrenen migraña migrañas -allerg- deprim- depressed astmę astmy astmą orthop- ortop-
    gynäk- gynaec- gynec- ginec- ginek- gynek- kardiolog- cardiolog- cardiólog- dermatolog- dermatólog-
    urolog- onkolog- oncolog- oncólog- neurolog- neurólog- endokrinolog- endocrinolog- physiotherap-
    physical_therap- fisioterap- fysiotherap- kinésithérap- pediatr- pädiatr- pédiatr-
    """,
        "religion": """
    religi- relig- muslim- islam- ramadan- ramazan- buddhis- budis- hindu- atheis- ateis- sikh-
    """,
        "money": "iban_number",
        "politics": "politi- polít-",
        "sexuality": """
    lesbian- lesb- bisexual- bisexu- biseks- homosexu- homoseks- transgender transgén- queer lgbt-
    """,
        "papers": "visa passport-",
    },
    "english": {
        "health": """
    medication- medicine- medicated medical_condition medical_conditions medical_history medical_leave meds
    doctor? doctors? dentist- physician- therapist- therapy therapies counselling diagnosed_with illness-
    is_ill am_ill was_ill fell_ill seriously_ill chronically_ill terminally_ill is_sick am_sick was_sick
    sick_leave sick_note disease- syndrome? cancer- tumor- tumour- surgery surgeries surgeon- hospital
    hospitals hospitali? hospitalis- hospitaliz- pregnan- miscarriage- abortion- infertil- menopaus-
    fertility ivf pills prescribed prescription- dosage antihistamine- painkiller- inhaler- vaccin- vitamins
    blood_pressure blood_test blood_sugar heart_attack heart_disease heart_condition heart_failure
    chronic_pain back_pain chronic_fatigue stomach_ulcer insomnia anxiety panic_attack- panic_attacks
    eating_disorder ocd ptsd suicid- self_harm mental_health health_problem health_problems health_issue
    health_issues health_insurance health_condition alcoholic- alcoholism addiction- sober rehab overdos-
    wheelchair- disability disabilities is_blind colour_blind color_blind deaf hearing_aid hearing_aids
    celiac coeliac lactose_intolerant gluten_intolerant arthritis crohn- thyroid- cholesterol
    hormone_therapy overweight obese broke_his_leg broke_her_leg broken_leg broken_arm kidney_stones
    kidney_disease psychologist- quit_drinking trying_to_conceive chemo
    """,
        "family": """
    wife wives husband- spouse- fiance fiancee fiancé girlfriend- boyfriend- married marries marriage-
    wedding- divorc- my_ex ex_wife ex_husband my_partner his_partner her_partner user_s_partner
    their_partner widowed widower engaged_to broke_up_with mother? mothers father? fathers mom mum mommy
    daddy dad dads parents? grandm- grandpa- grandpa grandfather- grandparent- grandchild- grandson-
    granddaughter- stepmother stepfather stepson stepdaughter stepchild- my_son his_son her_son our_son
    their_son user_s_son has_a_son have_a_son daughter- children? childs kid? kids? baby? babies? toddler-
    newborn brother? brothers? sister? sisters? siblings? twins? aunt aunts uncle? uncles cousin- nephew-
    niece- in_laws in_law family? families? custody maternity_leave paternity_leave parental_leave
    foster_child my_sons his_sons her_sons their_sons our_sons two_sons three_sons single_parent is_a_parent
    became_a_parent my_child his_child her_child our_child their_child user_s_child has_a_child?
    have_a_child? only_child? expecting_a_child first_child? second_child? sick_child disabled_child
    my_sibling funeral bereavement passed_away ex_girlfriend ex_boyfriend
    """,
        "religion": """
    christians christianity is_christian a_christian devout catholic- protestant- jew jews jewish judaism
    church? churches mosque- synagogue- pray prays praying prayer- bible? quran kosher halal mormon-
    jehovah- agnostic? orthodox_christian baptism baptised baptized baptist baptists converted_to_islam
    converted_to_christianity converted_to_judaism converted_to_catholicism goes_to_mass
    """,
        "money": """
    salary wages income? debt? debts? in_debt loans? mortgage- bankrupt- pension- paycheck- payslip-
    bank_account bank_balance overdraft credit_score credit_card_number credit_card_debt owe_money pays_rent
    the_rent earns? earning? unemployment_benefit unemployment_benefits gets_paid net_worth inheritance_from
    inherited_money tax_return tax_returns tax_debt pay_rise financial_problem financial_problems
    financial_trouble can_t_afford cannot_afford gambling in_the_red my_wage his_wage her_wage hourly_wage
    a_loan student_loan car_loan loan_from loan_payment- child_support behind_on_rent owes? savings_account
    my_savings his_savings her_savings their_savings life_savings no_savings
    """,
        "whereabouts": """
    home_address street_address postal_address mailing_address my_address? his_address? her_address?
    their_address? user_s_address? address_is? lives_at live_at living_at apartment_number house_number
    zip_code? at_the_hotel at_a_hotel in_a_hotel in_the_hotel hotel_room staying_at stays_at checked_in_at
    check_in_at flight_to flight_from flies_to flying_to flying_from boarding on_holiday on_holidays
    on_vacation home_alone alone_at_home out_of_town away_until away_from_home out_of_the_country
    is_travelling_to is_traveling_to travels_to travelling_to traveling_to currently_in_the?
    is_currently_in? right_now_in will_be_in? is_away is_abroad airbnb at_the_airport at_the_hospital
    at_the_gym on_a_trip on_a_train arrives_at_home
    """,
        "politics": """
    vote votes voted voting elections democrat- republican- socialis- communis- union_member protester-
    """,
        "sexuality": """
    gay trans asexual- nonbinary non_binary dating affair sexual- sex pronouns came_out coming_out
    """,
        "papers": """
    citizen- immigra- ethnic- asylum refugee- social_security driving_licen- green_card id_card
    """,
        "loosely": """
    health- medic- doctor- therap- diagnos- anxi- disab- disease addict- pill headache- weight bank- tax-
    loan- debt- partner- fianc- child- parent- address- lives living home moved moving commut- travel-
    vacation- holiday- hotel- street city born flight- faith live_in live_with his_ex her_ex an_ex rents
    invests invested investing investor- investment- wage the_son a_son call_his_ex ex_partner savings
    christian ex sons
    """,
    },
    "german": {
        "health": """
    -arzt- -ärzt- -medikament- tabletten -therapie- -therapeut- psychotherapeut- psychisch- angststörung-
    -schwanger- fehlgeburt- abtreib- krebs -krebs -klinik- spital operiert diagnostiziert -schmerzen
    rückenschmerz- kopfschmerz- impfung- geimpft süchtig- alkoholik- entzugsklinik verschrieben blutdruck-
    behindert- behinderung- schwerbehind- rollstuhl- schlafstör- schlaflos- unfruchtbar- suizid-
    herzinfarkt- schlaganfall- bandscheib- rheuma- grippe fieber gesundheitlich- erkrankt- erkrankung-
    pillen zahnspange- pflegegrad- hörgerät- krank kranke kranker kranken krankheit- krankenhaus-
    krankenkasse- krankgeschrieben krankschreib- krankenschein- herzkrank- suchtkrank- psychologe
    psychologin psychologen depressionen krebs- chemo -unverträglichkeit
    """,
        "family": """
    meine_frau meiner_frau seine_frau seiner_frau ihr_mann mein_mann ihrem_mann meinem_mann ehefrau-
    ehemann- ehemänn- gattin- verheiratet- verlobt- verlobung- hochzeit- scheidung- meine_freundin
    meiner_freundin seine_freundin mein_freund ihr_freund mutter? mütter vater? vaters mutti vati mama papa
    eltern? elternteil elternzeit elternabend sohn sohnes söhne- tochter ein_kind mein_kind sein_kind
    ihr_kind unser_kind meinem_kind kinder? kindern kindes kindergeld kindergarten- baby? bruder schwester?
    schwestern? geschwister- oma großmutter- großvater- großeltern- enkelin- enkelkind- onkel cousin- neffe-
    schwieger- familie? familien? familienangehör- witwe- alleinerziehend- ist_geschieden bin_geschieden
    geschiedene in_der_kita mein_enkel sein_enkel ihr_enkel enkelsohn meine_tante seine_tante ihre_tante
    töchtern tochter? brüdern mein_opa sein_opa ihr_opa opas
    """,
        "religion": """
    evangelisch- katholi- protestantisch- moschee- christin christlich- jüdin- juden jüdisch- synagoge-
    kirche- gottesdienst- konfirmation- kommunion getauft taufe beten betet gebet gläubig- konfession-
    ist_jude der_koran
    """,
        "money": """
    gehälter lohn lohnzettel löhne schulden verschuldet- kredit- darlehen- hypothek- einkommen-
    steuererklär- steuerschuld- steuerberater- finanzamt- kontostand- bankkonto ersparnis- insolven-
    privatinsolvenz rente rentner- bürgergeld arbeitslosengeld geldsorgen geldprobleme miete alimente
    erbschaft- vermögend- pleite pfändung- überschuldet gehalt gehalts gehaltserh- euro_im_monat
    netto_im_monat
    """,
        "whereabouts": """
    adresse? wohnadresse- privatadresse- anschrift? -strasse hausnummer- postleitzahl? im_hotel hotelzimmer-
    im_urlaub urlaub- verreist verreise- fliegt_nach fliege_nach auf_reisen ferien allein_zuhause
    allein_zu_hause alleine_zuhause sturmfrei nicht_zuhause nicht_zu_hause gerade_in momentan_in zurzeit_in
    bis_sonntag_in auf_dienstreise am_flughafen flug_nach fliegt_am fliegt_morgen fliegt_heute fliege_am
    fliege_morgen
    """,
        "politics": "wählt_die wähler- cdu spd afd fdp partei parteimitglied- gewerkschaft-",
        "sexuality": "schwul- lesbisch- lesbe- bisexuell- sexuell- transsexuell- nichtbinär-",
        "papers": """
    reisepass- personalausweis- ausweis- staatsbürger- staatsangehör- visum aufenthalt- asyl- einbürger-
    """,
        "loosely": """
    gesundheit- diagnos- doktor wohnt wohne wohnen wohnung- umzug- umgezogen umziehen reise- reist stadt
    zuhause partner- bank steuer- konto geboren pendel- familien- flug- hotel- gewicht glaube
    """,
    },
    "french": {
        "health": """
    médecin- médicament- médicaux docteur- dentiste- psychiatre- thérapie- thérapeute- maladie- est_malade
    suis_malade était_malade malades enceinte grossesse- fausse_couche avortement- cancer- tumeur- hôpital
    hôpitaux hospitalis- chirurgi- opérée ordonnance- anxiété angoisse- insomni- handicapé- fauteuil_roulant
    alcoolique- toxicoman- vaccin- pilule- traitement_médical tension_artérielle arrêt_maladie santé_mentale
    problème_de_santé problèmes_de_santé infarctus avc séropositif- séropositive- stérilité suicid- grippe
    mal_de_dos mon_psy son_psy sa_psy un_psy une_psy été_opéré opéré_du opéré_de comprimés psychologue
    psychologues dépressif dépressive diagnostiqué_avec diagnostiquée_avec mal_au_dos mal_à_la_tête
    """,
        "family": """
    épouse- époux ma_femme sa_femme mon_copain ma_copine sa_copine son_copain petite_amie petit_ami fiancé-
    mariés mariage- divorc- veuf veuve mères père? pères maman papa parents? fils? ma_fille sa_fille
    mes_filles une_fille_de deux_filles enfant? enfants? bébé? bébés frère? frères? sœur? sœurs? grand_mère
    grand_père grands_parents petit_fils petite_fille oncle- cousine- neveu- nièce- beau_père belle_mère
    beau_frère belle_sœur famille? familles? jumeaux jumelles congé_maternité congé_parental pacsé- mon_mari
    son_mari le_mari leur_mari est_marié est_mariée suis_marié suis_mariée ma_tante sa_tante ma_mère sa_mère
    la_mère? leur_mère ta_mère conjoint conjointe
    """,
        "religion": """
    catholique- protestant- musulman- chrétien- juif- juive- judaïs- athée- bouddhis- mosquée- église-
    synagogue- prière- baptême- baptisé- croyant- croyante pratiquant- la_messe
    """,
        "money": """
    salaire- revenu revenus endett- crédit_immobilier prêt_immobilier hypothèque- compte_bancaire
    compte_en_banque découvert_bancaire épargne- faillite surendett- retraite loyer chômage héritage_de
    gagne_par_mois fiche_de_paie smic mes_économies ses_économies une_dette sa_dette ma_dette dettes impôt
    impôts emprunt_immobilier
    """,
        "whereabouts": """
    mon_adresse? son_adresse? adresse_est? adresse_postale domicile habite_au habite_rue rue_de rue_du
    rue_des avenue_de code_postal? à_l_hôtel chambre_d_hôtel en_vacances en_voyage vol_pour prend_l_avion
    à_l_aéroport seul_à_la_maison seule_à_la_maison seul_chez_lui seule_chez_elle en_déplacement_à
    actuellement_à en_ce_moment_à sera_à est_parti_à est_partie_à absent_jusqu absente_jusqu à_l_étranger
    """,
        "politics": "vote_pour voté élection- syndicat- syndiqué- parti_socialiste militant- manifestation",
        "sexuality": "gays homo sexuel- sexuelle- trans transgenre- orientation_sexuelle est_gai",
        "papers": """
    passeport- carte_d_identité nationalité- titre_de_séjour sans_papiers asile réfugié- naturalis- citoyen-
    """,
        "loosely": """
    santé soins habite habitons vit_à logement- déménag- voyage- vacances maison né_à née_à femme copain
    copine compagne- hôtel- adresse- fille filles impôts partenaire- la_ville une_ville banque banques
    """,
    },
    "spanish": {
        "health": """
    médico médica médicos medicamento- medicina- medicación doctora doctores dentista- terapia- terapeuta-
    enfermedad- enferma enfermo enfermos embaraz- aborto- cáncer- tumor- hospital hospitaliz- cirugía-
    operaron pastillas receta_médica diagnosticaron diagnosticad- ansiedad insomnio discapacidad-
    discapacitad- silla_de_ruedas alcohólic- adicción- vacuna- presión_arterial baja_médica salud_mental
    problemas_de_salud infarto- suicid- gripe dolor_de_espalda psicólogo psicóloga psicólogos
    """,
        "family": """
    esposa- esposo- mi_mujer su_mujer marido- novia- novio- mi_pareja su_pareja casad- matrimonio- boda-
    divorci- viuda viudo madres? padre? padres? mamá papá hijo? hijos? hija? hijas? bebé? hermano? hermanos?
    hermana? hermanas? abuela- abuelo- nieto- nieta- primo_hermano sobrino- sobrina- suegra- suegro- cuñad-
    familia? familias? gemelos gemelas mi_tía su_tía mi_tío su_tío mis_tíos familiares mi_madre su_madre
    la_madre? madre_de_familia prometida su_prometido
    """,
        "religion": """
    católic- protestante- judío- judía- musulm- iglesia- mezquita- sinagoga- rezar rezo oración- bautiz-
    bautismo budista- ateo atea ateos creyente- evangélic- testigo_de_jehová es_cristiano es_cristiana
    cristianos cristianismo rezan reza_todos reza_cada va_a_misa ir_a_misa la_misa
    """,
        "money": """
    salario- sueldo- deuda- endeud- préstamo- hipoteca- ingresos cuenta_bancaria ahorros impuestos hacienda
    bancarrota- quiebra pensión jubilación alquiler herencia_de gana_al_mes paro_cobra cobra_el_paro
    arruinad- mi_nómina su_nómina nóminas debe_dinero
    """,
        "whereabouts": """
    mi_dirección? su_dirección? dirección_es? domicilio- vive_en_la_calle código_postal? en_el_hotel
    en_un_hotel habitación_de_hotel de_vacaciones de_viaje vuelo_a vuela_a viaja_a aeropuerto solo_en_casa
    sola_en_casa fuera_de_casa ahora_mismo_en está_en_estos_días estará_en? en_el_extranjero la_calle
    en_calle
    """,
        "politics": "votó votar votante- elecciones sindicato- partido_político izquierdas derechas",
        "sexuality": "gay lesbiana- transexual- sexual- orientación_sexual",
        "papers": """
    pasaporte- nacionalidad- extranjería residencia_legal asilo refugiad- ciudadan- inmigra- mi_dni su_dni
    """,
        "loosely": """
    salud banco doctor vive vivo vivimos mudanza mudó mudar- viaje- viaja- vacaciones ciudad casa nació
    nacid- hotel- dirección pareja- mujer
    """,
    },
    "portuguese": {
        "health": """
    médico médica remédio- medicamento- medicação comprimido- dentista- terapia- doença- doente- gravidez
    aborto- câncer cancro tumor- hospital hospitais internad- cirurgia- diagnosticad- ansiedade insônia
    insónia deficiência- deficiente- cadeira_de_rodas alcoólatra- alcoólic- vício_em vacina- pressão_alta
    atestado_médico baixa_médica saúde_mental problemas_de_saúde infarto- enfarte- suicíd- gripe
    dor_nas_costas psicólogo psicóloga operado operada operaram grávida grávidas
    """,
        "family": """
    esposa- esposo- marido- minha_mulher namorad- noiva- noivo- casad- casament- divórcio- divorciad- viúva
    viúvo mães pai? mamãe papai filho? filhos? filha? filhas? irmão? irmãos? irmã? irmãs? avó avô avós
    prima_dela sobrinh- sogra- sogro- cunhad- família? famílias? gêmeos gémeos bebê? bebês bebé? bebés
    meus_pais seus_pais os_pais dos_pais teus_pais neto netos neta netas minha_tia sua_tia meu_tio seu_tio
    minha_mãe sua_mãe a_mãe? mãe_dele mãe_dela
    """,
        "religion": """
    católic- protestante- cristão- judeu- judia- judaic- muçulman- igreja- mesquita- sinagoga- rezar oração-
    batiz- budista- ateu ateia crente- evangélic- umbanda candomblé espírita é_cristã é_cristão cristãos
    cristianismo reza_todo reza_o à_missa na_missa
    """,
        "money": """
    salário- dívida- endividad- empréstimo- hipoteca- renda_mensal conta_bancária conta_no_banco poupança-
    falência falid- aposentadoria reforma_mensal aluguel herança_de ganha_por_mês seguro_desemprego
    meu_ordenado seu_ordenado imposto_de_renda impostos
    """,
        "whereabouts": """
    meu_endereço? seu_endereço? endereço_é? morada mora_na_rua no_hotel num_hotel quarto_de_hotel de_férias
    em_férias de_viagem viajando voo_para viaja_para aeroporto sozinho_em_casa sozinha_em_casa fora_de_casa
    neste_momento_em estará_em? no_exterior no_estrangeiro na_rua da_rua
    """,
        "politics": """
    votou votar eleições eleitor- sindicato- petista- bolsonarist- esquerdista- partido_político
    """,
        "sexuality": "gay lésbica- transexual- sexual- orientação_sexual",
        "papers": "passaporte- nacionalidade- cpf cidadania asilo refugiad- imigra- estrangeir- visto_de",
        "loosely": """
    saúde banco mora moro morar mudou_se mudança- viagem- viaja- férias cidade casa nasceu nascid- hotel-
    endereço- parceir- mulher doutor renda
    """,
    },
    "italian": {
        "health": """
    medico medici medicin- dottoressa- dentista- terapia- terapeuta- malattia- malattie incint- gravidanza-
    aborto- cancro tumore- ospedal- ricoverat- chirurg- operat_al intervento_chirurgico pastiglie
    diagnosticat- ansia insonnia disabil- sedia_a_rotelle alcolist- dipendenza_da vaccin- pressione_alta
    salute_mentale problemi_di_salute infart- suicid- influenza_intestinale mal_di_schiena pillola psicologo
    psicologa malato malata malati malate farmaco farmaci
    """,
        "family": """
    moglie marito fidanzat- mia_ragazza mio_ragazzo sposat- matrimoni- divorzi- vedova vedovo madri padre?
    padri? mamma papà genitor- figlio? figli? figlia? figlie? bambin- neonat- fratello? fratelli? sorella?
    sorelle? nonna nonni nonno nipot- zia zii cugin- suocer- cognat- famigli- gemelli compagna_di_vita
    mia_madre sua_madre la_madre? loro_madre
    """,
        "religion": """
    cattolic- protestant- ebreo ebrea ebrei ebraic- musulman- moschea- sinagoga- preghier- battez- battesim-
    messa_domenicale buddist- ateo atei credente- testimone_di_geova è_cristiano è_cristiana cristiani
    cristianesimo chiesa pregano preghiera
    """,
        "money": """
    indebitat- prestit- conto_bancario conto_in_banca risparmi fallimento_personale pensione affitto
    eredità_di guadagna_al_mese cassa_integrazione busta_paga stipendio stipendi salario salari debito
    debiti un_mutuo il_mutuo del_mutuo mutuo_per reddito redditi le_tasse
    """,
        "whereabouts": """
    mio_indirizzo? suo_indirizzo? indirizzo_di_casa indirizzo_è? domicilio- abita_in_via abito_in_via
    in_albergo in_hotel camera_d_albergo in_vacanza in_ferie in_viaggio volo_per vola_a aeroporto
    da_solo_a_casa da_sola_a_casa solo_in_casa sola_in_casa fuori_casa in_questo_momento_a sarà_a?
    all_estero
    """,
        "politics": "votato votare vota elezioni sindacat- partito_politico elettor-",
        "sexuality": "gay lesbic- sessual- transessual- orientamento_sessuale",
        "papers": """
    passaport- nazionalità permesso_di_soggiorno carta_d_identità codice_fiscale asilo rifugiat- cittadin-
    """,
        "loosely": """
    salute dottore banca abita abito vive vivo trasfer- traslo- viaggi- vacanz- città casa nato_a nata_a
    hotel- albergo indirizzo- ragazza ragazzo fede compagno compagna
    """,
    },
}
